/* The pure parts of HTTP/2: header lists as heads and back, and the memory of its sessions. */
#include "proxy/h2_head.h"
#include "proxy/h2_mem.h"
#include "unit/unit.h"

#include <errno.h>

/* "name=value" each; a '!' in front: never to be indexed. */
static void fill(struct h2_block *block, const char *const *fields)
{
  h2_block_clear(block);
  for (; *fields; fields++) {
    bool never = **fields == '!';
    struct span text = span_of(*fields + never);
    size_t mark = span_find(text, '=');

    h2_block_add(block, span_sub(text, 0, mark), span_sub(text, mark + 1, text.len), never);
  }
}

#define FIELDS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define GET ":method=GET", ":scheme=https", ":path=/x?y"

static void check_request(const char *const *fields, int expected, const char *text)
{
  struct h2_block block = H2_BLOCK_INIT;
  buf_autofree struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES + 4096);
  struct err err = ERR_INIT;

  fill(&block, fields);
  assert_int_equal(h2_block_write_request(&block, &err, &out), expected);
  if (expected == 0)
    assert_string_equal(out.data, text);
  else
    assert_true(*err.message);
  h2_block_clear(&block);
}

static void test_request(void **state)
{
  (void)state;
  check_request(FIELDS(GET, ":authority=a.test", "accept=*/*", "x-empty="), 0,
                "GET /x?y HTTP/1.1\r\nhost: a.test\r\naccept: */*\r\nx-empty: \r\n\r\n");
  check_request(FIELDS(GET, "host=a.test"), 0, "GET /x?y HTTP/1.1\r\nhost: a.test\r\n\r\n");
  check_request(FIELDS(GET, ":authority=a.test", "host=A.test"), 0, "GET /x?y HTTP/1.1\r\nhost: a.test\r\n\r\n");
  check_request(FIELDS(GET, ":authority=a.test", "host=b.test"), -EACCES, NULL);
  check_request(FIELDS(GET, ":authority=a.test", "host="), -EACCES, NULL);
  check_request(FIELDS(":method=GET", ":scheme=http", ":path=/", ":authority=a.test"), -EBADMSG, NULL);
  check_request(FIELDS(":method=CONNECT", ":authority=a.test:443"), 0,
                "CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\n\r\n");
}

static void test_response(void **state)
{
  struct h2_block block = H2_BLOCK_INIT;
  buf_autofree struct buf out = BUF_INIT(4096);

  (void)state;
  fill(&block, FIELDS(":status=404", "a=b"));
  assert_true(h2_block_has_status(&block));
  assert_int_equal(h2_block_write_response(&block, NULL, &out), 0);
  assert_string_equal(out.data, "HTTP/1.1 404 \r\na: b\r\n\r\n");
  buf_free(&out);
  fill(&block, FIELDS("a=b"));
  assert_false(h2_block_has_status(&block));
  assert_int_equal(h2_block_write_response(&block, NULL, &out), 0);
  assert_string_equal(out.data, "HTTP/1.1 200 \r\na: b\r\n\r\n");
  h2_block_clear(&block);
}

/* Past the limits nothing is kept, however long it goes on. */
static void test_limits(void **state)
{
  static char large[LIMITS_HTTP_HEAD_BYTES];
  struct h2_block block = H2_BLOCK_INIT;
  buf_autofree struct buf out = BUF_INIT(LIMITS_HTTP_HEAD_BYTES + 4096);

  (void)state;
  fill(&block, FIELDS(GET, ":authority=a.test"));
  for (int i = 0; i < LIMITS_HTTP_FIELDS - 1; i++)
    h2_block_add(&block, SPAN("a"), SPAN("b"), false);
  assert_int_equal(h2_block_write_request(&block, NULL, &out), 0);
  h2_block_add(&block, SPAN("a"), SPAN("b"), false);
  assert_int_equal(h2_block_write_request(&block, NULL, &out), -E2BIG);
  memset(large, 'a', sizeof large);
  fill(&block, FIELDS(GET, ":authority=a.test"));
  for (int i = 0; i < 1000; i++)
    h2_block_add(&block, SPAN("a"), (struct span){ large, sizeof large / 2 }, false);
  assert_int_equal(h2_block_write_request(&block, NULL, &out), -E2BIG);
  assert_in_range(block.lines.len, 0, LIMITS_HTTP_HEAD_BYTES);
  assert_in_range(block.size, 1000 * sizeof large / 2, 1002 * sizeof large / 2);
  fill(&block, FIELDS(GET));
  h2_block_add(&block, SPAN(":authority"), (struct span){ large, sizeof large }, false);
  assert_int_equal(h2_block_write_request(&block, NULL, &out), -E2BIG);
  h2_block_clear(&block);
}

static void print_list(const struct h2_list *list, struct buf *out)
{
  buf_free(out);
  for (size_t i = 0; i < list->count; i++) {
    const nghttp2_nv *field = &list->fields[i];

    buf_printf(out, "%s%.*s=%.*s;", field->flags & NGHTTP2_NV_FLAG_NO_INDEX ? "!" : "", (int)field->namelen,
               (const char *)field->name, (int)field->valuelen, (const char *)field->value);
  }
}

static void test_lists(void **state)
{
  static const char text[] = "GET /?key=secret HTTP/1.1\r\nhost: b.test\r\nAuthorization: secret\r\nX-Own: y\r\n"
                             "te: trailers\r\ntrailer: z\r\nConnection: x-own\r\nproxy-x: 1\r\nKeep-Alive: 1\r\n"
                             "x-never: 1\r\n\r\n";
  const struct span value = { strstr(text, "secret\r\n"), 6 };
  const struct span path = { strstr(text, "/?key"), 12 };
  buf_autofree struct buf out = BUF_INIT(4096);
  struct http_head head;
  struct h2_list list;

  (void)state;
  assert_int_equal(http_head_parse_request(span_of(text), NULL, &head), 0);
  h2_list_request(&head, SPAN("a.test"), value, h2_head_name_bit(SPAN("x-never")), &list);
  assert_int_equal(buf_error(&list.names), 0);
  print_list(&list, &out);
  assert_string_equal(out.data, ":method=GET;:scheme=https;:authority=a.test;:path=/?key=secret;!authorization=secret;"
                                "x-own=y;te=trailers;trailer=z;!x-never=1;");
  h2_list_clear(&list);
  h2_list_request(&head, SPAN("a.test"), path, 0, &list);
  assert_true(list.fields[3].flags & NGHTTP2_NV_FLAG_NO_INDEX);
  assert_false(list.fields[4].flags & NGHTTP2_NV_FLAG_NO_INDEX);
  h2_list_clear(&list);
  assert_int_equal(http_head_parse_response(SPAN("HTTP/1.1 204 \r\na: b\r\n\r\n"), NULL, &head), 0);
  h2_list_response(&head, 0, &list);
  print_list(&list, &out);
  assert_string_equal(out.data, ":status=204;a=b;");
  h2_list_clear(&list);
  h2_list_trailer(&head, 0, &list);
  print_list(&list, &out);
  assert_string_equal(out.data, "a=b;");
  h2_list_clear(&list);
}

/* Bounded by itself and by the budget, and all of it is given back. */
static void test_memory(void **state)
{
  struct budget budget = { .max = 5000 };
  struct h2_mem mem;
  char *a, *b;

  (void)state;
  h2_mem_init(&mem, &budget, 2000);
  a = mem.calls.malloc(1000, &mem);
  assert_non_null(a);
  memset(a, 'a', 1000);
  assert_in_range(budget.used, 1000, 1100);
  assert_null(mem.calls.malloc(1000, &mem));
  assert_null(mem.calls.calloc(SIZE_MAX / 2, 4, &mem));
  assert_null(mem.calls.malloc(SIZE_MAX, &mem));
  assert_null(mem.calls.realloc(a, 1500, &mem)); /* both would have to be there for a moment */
  b = mem.calls.realloc(a, 500, &mem);
  assert_non_null(b);
  assert_int_equal(b[499], 'a');
  mem.calls.free(b, &mem);
  mem.calls.free(NULL, &mem);
  assert_int_equal(budget.used, 0);
  budget.used = 4500;
  assert_null(mem.calls.malloc(1000, &mem));
  a = mem.calls.calloc(10, 10, &mem);
  assert_non_null(a);
  assert_int_equal(a[99], 0);
  mem.calls.free(a, &mem);
  assert_int_equal(budget.used, 4500);
  assert_int_equal(mem.used, 0);
  budget = (struct budget){ .max = 100000 };
  h2_mem_init(&mem, &budget, 60000);
  a = mem.calls.malloc(20000, &mem); /* a mapping */
  assert_non_null(a);
  a[19999] = 'z';
  a = mem.calls.realloc(a, 30000, &mem);
  assert_non_null(a);
  assert_int_equal(a[19999], 'z');
  mem.calls.free(a, &mem);
  assert_int_equal(budget.used, 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_request), cmocka_unit_test(test_response), cmocka_unit_test(test_limits),
    cmocka_unit_test(test_lists),   cmocka_unit_test(test_memory),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
