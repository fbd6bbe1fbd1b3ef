#include <smaps/kernel.h>

#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <smaps/text.h>

bool kernel_release(unsigned *ret_major, unsigned *ret_minor) {
  struct utsname u;
  struct cursor s;

  if (uname(&u) != 0)
    return false;
  s = cursor_begin(u.release, strlen(u.release));
  return parse_u32(&s, ret_major) && parse_char(&s, '.') &&
         parse_u32(&s, ret_minor);
}

static uint64_t read_number(const char *path) {
  uint64_t number = 0;
  char text[32];
  struct cursor s;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0)
    return 0;
  n = read(fd, text, sizeof(text));
  close(fd);
  if (n <= 0)
    return 0;
  s = cursor_begin(text, (size_t)n);
  return parse_u64(&s, &number) ? number : 0;
}

uint64_t kernel_mappings_most(void) {
  uint64_t most = read_number("/proc/sys/vm/max_map_count");

  return most ? most : UINT64_MAX;
}

void kernel_read_ksm(struct ksm *ret) {
  *ret = (struct ksm){.run = read_number("/sys/kernel/mm/ksm/run"),
                      .pages_sharing =
                          read_number("/sys/kernel/mm/ksm/pages_sharing")};
}
