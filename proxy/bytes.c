#include "proxy/bytes.h"

/* A number of size bytes, at most four. */
static bool take_number(struct span *rest, size_t size, uint32_t *ret_value)
{
  uint32_t value = 0;

  if (rest->len < size)
    return false;
  for (size_t i = 0; i < size; i++)
    value = value << 8 | (unsigned char)rest->ptr[i];
  *rest = (struct span){ rest->ptr + size, rest->len - size };
  *ret_value = value;
  return true;
}

bool bytes_take_u8(struct span *rest, unsigned *ret_value)
{
  uint32_t value;

  if (!take_number(rest, 1, &value))
    return false;
  *ret_value = value;
  return true;
}

bool bytes_take_u16(struct span *rest, unsigned *ret_value)
{
  uint32_t value;

  if (!take_number(rest, 2, &value))
    return false;
  *ret_value = value;
  return true;
}

bool bytes_take_u24(struct span *rest, uint32_t *ret_value)
{
  return take_number(rest, 3, ret_value);
}

bool bytes_take_u32(struct span *rest, uint32_t *ret_value)
{
  return take_number(rest, 4, ret_value);
}

bool bytes_take(struct span *rest, size_t len, struct span *ret_part)
{
  if (rest->len < len)
    return false;
  *ret_part = (struct span){ rest->ptr, len };
  *rest = (struct span){ rest->ptr + len, rest->len - len };
  return true;
}

static bool take_vector(struct span *rest, size_t size, struct span *ret_part)
{
  struct span after = *rest;
  uint32_t len;

  if (!take_number(&after, size, &len) || !bytes_take(&after, len, ret_part))
    return false;
  *rest = after;
  return true;
}

bool bytes_take_vector8(struct span *rest, struct span *ret_part)
{
  return take_vector(rest, 1, ret_part);
}

bool bytes_take_vector16(struct span *rest, struct span *ret_part)
{
  return take_vector(rest, 2, ret_part);
}
