/* A configuration that liboconfig takes is taken again when it is written from
 * its items, with the same items; one that it refuses leaves nothing behind. */
#include "fuzz.h"

#include <collectd/core/daemon/collectd.h>
#include <collectd/liboconfig/oconfig.h>

#include <inttypes.h>
#include <sys/mman.h>

#include "told.h"

static const char good[] = "<A 1 true>\nB \"c\\\"\"\n</A>\n";

static oconfig_item_t *parse(const void *text, size_t size) {
  int file = memfd_create("config", MFD_CLOEXEC);
  oconfig_item_t *root;
  char path[64];

  require(file >= 0 && write(file, text, size) == (ssize_t)size);
  snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  root = oconfig_parse_file(path);
  close(file);
  require((root != NULL) == (told_errors() == 0));
  return root;
}

/* A number as the words of its bits: it may have more digits than are read. */
static void write_value(FILE *out, const oconfig_value_t *v) {
  const char *words = v->value.string;
  uint64_t bits;
  char number[32];

  memcpy(&bits, &v->value.number, sizeof(bits));
  snprintf(number, sizeof(number), "%" PRIx64, bits);
  if (v->type == OCONFIG_TYPE_NUMBER)
    words = number;
  else if (v->type == OCONFIG_TYPE_BOOLEAN)
    words = v->value.boolean ? "true" : "false";
  fputs(" \"", out);
  for (; *words; words++)
    fprintf(out, "\\%c", *words);
  fputc('"', out);
}

/* A newline behind a backslash would be taken out of a string. */
static bool has_newline(const oconfig_item_t *item) {
  for (int i = 0; i < item->values_num; i++)
    if (item->values[i].type == OCONFIG_TYPE_STRING &&
        strpbrk(item->values[i].value.string, "\r\n"))
      return true;
  for (int i = 0; i < item->children_num; i++)
    if (has_newline(&item->children[i]))
      return true;
  return false;
}

static void write_items(FILE *out, const oconfig_item_t *parent) {
  for (int i = 0; i < parent->children_num; i++) {
    const oconfig_item_t *item = &parent->children[i];
    bool is_block = item->children_num > 0;

    require(item->key && *item->key);
    fprintf(out, is_block ? "<%s" : "%s", item->key);
    for (int j = 0; j < item->values_num; j++)
      write_value(out, &item->values[j]);
    fputs(is_block ? ">\n" : "\n", out);
    if (!is_block)
      continue;
    write_items(out, item);
    fprintf(out, "</%s>\n", item->key);
  }
}

static char *write_all(const oconfig_item_t *root, size_t *ret_len) {
  char *text;
  FILE *out = open_memstream(&text, ret_len);

  require(out);
  write_items(out, root);
  fclose(out);
  return text;
}

static void parse_again(const oconfig_item_t *root) {
  size_t len, len_again;
  char *text = write_all(root, &len), *text_again;
  oconfig_item_t *again = parse(text, len);

  require(again);
  text_again = write_all(again, &len_again);
  require(len == len_again && memcmp(text, text_again, len) == 0);
  free(text);
  free(text_again);
  oconfig_free(again);
}

static void forget_mistakes(void) {
  static FILE *null;

  if (!null)
    null = fopen("/dev/null", "we");
  require(null);
  told_print(null);
}

static void parse_good(void) {
  oconfig_item_t *root = parse(good, strlen(good));

  require(root && root->children_num == 1);
  require(strcmp(root->children[0].children[0].values[0].value.string, "c\"") ==
          0);
  oconfig_free(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  oconfig_item_t *root = parse(data, size);

  forget_mistakes();
  if (root && !has_newline(root))
    parse_again(root);
  if (root)
    oconfig_free(root);
  parse_good();
  return 0;
}
