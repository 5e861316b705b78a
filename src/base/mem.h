/* mem: allocation that fails by value, and cleanup attributes.
 *
 * Nothing here aborts: a caller gets NULL and reports -ENOMEM.
 */
#ifndef SBX_BASE_MEM_H
#define SBX_BASE_MEM_H

#include <stddef.h>

/* Calls fn(&variable) when the variable leaves its scope. */
#define MEM_CLEANUP(fn) __attribute__((cleanup(fn)))

/* Frees the pointer that *p points at; for MEM_CLEANUP on any object pointer. */
void mem_free_indirect(void *p);
#define mem_autofree MEM_CLEANUP(mem_free_indirect)

/* Hands the pointer out of a scope that would free it: evaluates to the old value and leaves NULL behind. */
#define mem_steal(pointer) \
  __extension__({ \
    __typeof__(pointer) *mem_steal_at_ = &(pointer); \
    __typeof__(pointer) mem_steal_value_ = *mem_steal_at_; \
    *mem_steal_at_ = NULL; \
    mem_steal_value_; \
  })

/* Number of elements of an array (not of a pointer). */
#define MEM_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Zeroed memory for count elements of size bytes; NULL when the product overflows or memory is short. Caller frees. */
void *mem_calloc(size_t count, size_t size);

/* Makes room for one more element in a growing array.
 *
 * items    address of the array pointer (NULL for an empty one)
 * count    elements in use
 * cap      address of the elements allocated; grows by doubling
 * size     bytes of one element
 * max      ceiling in elements, never exceeded
 * Returns 0, -E2BIG at the ceiling, or -ENOMEM. On failure nothing changes. */
int mem_grow(void *items, size_t count, size_t *cap, size_t size, size_t max);

/* A NUL-terminated copy of len bytes; NULL when memory is short. Caller frees. */
char *mem_strndup(const char *bytes, size_t len);

/* Overwrites memory in a way that the compiler may not drop (explicit_bzero(3)). */
void mem_wipe(void *bytes, size_t len);

#endif
