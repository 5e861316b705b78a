/* fuzz: what every fuzz target includes. */
#ifndef SBX_TESTS_FUZZ_FUZZ_H
#define SBX_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The target: libFuzzer calls it, or replay.c once per corpus file. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process when what must hold does not. */
#define FUZZ_ASSERT(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      abort(); \
    } \
  } while (0)

#endif
