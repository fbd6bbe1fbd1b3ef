/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over files, and over all files in directories: the corpus
 * and the findings of fuzzing. Then runs it over each file cut at every byte,
 * up to a length.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CUTS_MAX 512

static unsigned runs;

static void run(const uint8_t *data, size_t size) {
  LLVMFuzzerTestOneInput(data, size);
  runs++;
}

static void run_file(const char *path, size_t size) {
  uint8_t *data = malloc(size + 1);
  FILE *file = fopen(path, "rb");

  if (!data || !file || fread(data, 1, size, file) != size) {
    perror(path);
    exit(1);
  }
  fclose(file);
  /* Printed first, to show the file that crashes. */
  if (getenv("FUZZ_VERBOSE"))
    fprintf(stderr, "%s\n", path);
  run(data, size);
  for (size_t cut = 0; cut < size && cut < CUTS_MAX; cut++)
    run(data, cut);
  free(data);
}

static void run_path(const char *path) {
  struct dirent *entry;
  struct stat st;
  DIR *dir;

  if (stat(path, &st) < 0) {
    perror(path);
    exit(1);
  }
  if (!S_ISDIR(st.st_mode)) {
    run_file(path, (size_t)st.st_size);
    return;
  }
  dir = opendir(path);
  while (dir && (entry = readdir(dir))) {
    char below[4096];

    if (entry->d_name[0] == '.')
      continue;
    snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
    run_path(below);
  }
  if (dir)
    closedir(dir);
}

int main(int argc, char **argv) {
  const char *name = strrchr(argv[0], '/');

  for (int i = 1; i < argc; i++)
    run_path(argv[i]);
  printf("ok: %s (%u inputs)\n", name ? name + 1 : argv[0], runs);
  return runs > 0 ? 0 : 1;
}
