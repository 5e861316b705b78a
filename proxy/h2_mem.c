/* Large pieces are mapped by themselves: nghttp2 takes a buffer for one frame per session and hardly ever fills it,
 * since bodies do not pass through it (h2_body.c). Of a mapping only the pages that are touched take memory. */
#include "proxy/h2_mem.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MAPPED_BYTES (16 * 1024) /* from here on */

/* Stands in front of each piece. */
union piece {
  struct {
    size_t size; /* with this */
    bool is_mapped;
  };
  max_align_t align;
};

static union piece *obtain(size_t size)
{
  void *mapped = MAP_FAILED;
  union piece *piece;

  if (size >= MAPPED_BYTES)
    mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  piece = mapped == MAP_FAILED ? malloc(size) : mapped;
  if (!piece)
    return NULL;
  piece->size = size;
  piece->is_mapped = mapped != MAP_FAILED;
  return piece;
}

static void *take(size_t size, void *data)
{
  struct h2_mem *mem = data;
  union piece *piece;

  if (size > mem->max || size + sizeof *piece > mem->max - mem->used || !budget_take(mem->budget, size + sizeof *piece))
    return NULL;
  piece = obtain(size + sizeof *piece);
  if (!piece) {
    budget_give(mem->budget, size + sizeof *piece);
    return NULL;
  }
  mem->used += piece->size;
  return piece + 1;
}

static void give(void *bytes, void *data)
{
  struct h2_mem *mem = data;
  union piece *piece = bytes;
  size_t size;

  if (!bytes)
    return;
  piece--;
  size = piece->size;
  mem->used -= size;
  budget_give(mem->budget, size);
  if (piece->is_mapped) {
    munmap(piece, size); /* whoever gets the pages next gets them zeroed */
    return;
  }
  mem_wipe(piece, size);
  free(piece);
}

static void *take_zeroed(size_t count, size_t size, void *data)
{
  void *bytes = size && count > SIZE_MAX / size ? NULL : take(count * size, data);

  if (bytes)
    memset(bytes, 0, count * size);
  return bytes;
}

static void *take_again(void *bytes, size_t size, void *data)
{
  size_t had = bytes ? ((union piece *)bytes - 1)->size - sizeof(union piece) : 0;
  void *moved = take(size, data);

  if (!moved)
    return NULL;
  if (bytes)
    memcpy(moved, bytes, had < size ? had : size);
  give(bytes, data);
  return moved;
}

void h2_mem_init(struct h2_mem *mem, struct budget *budget, size_t max)
{
  *mem = (struct h2_mem){
    .budget = budget,
    .max = max,
    .calls = { .mem_user_data = mem, .malloc = take, .free = give, .calloc = take_zeroed, .realloc = take_again },
  };
}
