#include "proxy/hosts.h"

/* Takes the next word off *rest. An empty span at the end. */
static struct span take_word(struct span *rest)
{
  size_t start = 0;
  size_t end;
  struct span word;

  while (start < rest->len && strchr(" \t\r", rest->ptr[start]))
    start++;
  end = start;
  while (end < rest->len && !strchr(" \t\r", rest->ptr[end]))
    end++;
  word = span_sub(*rest, start, end - start);
  *rest = span_sub(*rest, end, rest->len);
  return word;
}

static bool line_names(struct span names, struct span name)
{
  struct span word = take_word(&names);

  while (word.len) {
    if (word.ptr[word.len - 1] == '.')
      word.len--;
    if (span_equal_nocase(word, name))
      return true;
    word = take_word(&names);
  }
  return false;
}

static bool is_known(const struct addr *addrs, size_t count, const struct addr *addr)
{
  for (size_t i = 0; i < count; i++)
    if (addr_equal(&addrs[i], addr))
      return true;
  return false;
}

size_t hosts_lookup(struct span text, struct span name, struct addr *ret_addrs, size_t max)
{
  size_t count = 0;
  struct span line;

  while (count < max && span_split(&text, '\n', &line)) {
    struct span rest = span_sub(line, 0, span_find(line, '#'));
    struct span word = take_word(&rest);
    struct addr addr;

    if (!line_names(rest, name) || addr_parse(word, &addr) < 0 || is_known(ret_addrs, count, &addr))
      continue;
    ret_addrs[count++] = addr;
  }
  return count;
}
