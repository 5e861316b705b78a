#include "base/sha1.h"
#include "run/java_store.h"
#include "unit/unit.h"

#define OUT_BYTES (1024 * 1024)
#define PEM_OF(digits) "-----BEGIN CERTIFICATE-----\n" digits "\n-----END CERTIFICATE-----\n"

static void sum_of(const char *text, size_t times, char ret_hex[2 * SHA1_BYTES + 1])
{
  unsigned char digest[SHA1_BYTES];
  struct sha1 sha1;

  sha1_begin(&sha1);
  for (size_t i = 0; i < times; i++)
    sha1_add(&sha1, span_of(text));
  sha1_end(&sha1, digest);
  for (size_t i = 0; i < SHA1_BYTES; i++)
    snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

/* Of FIPS 180's examples, and the lengths around a block's end against sha1sum(1). */
static void test_sha1(void **state)
{
  static const struct {
    const char *text;
    size_t times;
    const char *digest;
  } rows[] = {
    { "", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
    { "abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
    { "a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f" },
    { "a", 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
    { "a", 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
    { "a", 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
    { "a", 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    char hex[2 * SHA1_BYTES + 1];

    sum_of(rows[i].text, rows[i].times, hex);
    unit_assert_row(strcmp(hex, rows[i].digest) == 0, rows[i].digest, hex);
  }
}

static struct span make(struct span host, const char *bundle, const char *ca, struct buf *out)
{
  assert_int_equal(java_store_make(host, span_of(bundle), span_of(ca), out), 0);
  assert_true(java_store_is_read(buf_span(out)));
  return buf_span(out);
}

static bool holds(struct span store, const char *text)
{
  return memmem(store.ptr, store.len, text, strlen(text));
}

/* Of what is not JKS the bundle takes the place; of what is, every byte of its entries stays. */
static void test_entries(void **state)
{
  buf_autofree struct buf first = BUF_INIT(OUT_BYTES);
  buf_autofree struct buf second = BUF_INIT(OUT_BYTES);
  struct span made =
      make(SPAN("0\x82 PKCS #12"), "x" PEM_OF("b25l") "y" PEM_OF("dHd\r\n v") PEM_OF("!"), PEM_OF("Y2E="), &first);
  struct span again;

  (void)state;
  assert_int_equal(made.ptr[11], 3);
  assert_true(holds(made, "one") && holds(made, "two") && holds(made, "ca"));
  again = make(made, PEM_OF("dGhyZWU="), PEM_OF("bmV3"), &second);
  assert_int_equal(again.ptr[11], 4);
  assert_false(holds(again, "three"));
  assert_true(holds(again, "new"));
  assert_memory_equal(again.ptr + again.len - 20 - (made.len - 32), made.ptr + 12, made.len - 32);
}

static void test_refused(void **state)
{
  buf_autofree struct buf out = BUF_INIT(OUT_BYTES);
  buf_autofree struct buf small = BUF_INIT(64);
  static const char huge[] = "\xfe\xed\xfe\xed\x00\x00\x00\x02\xff\xff\xff\xff--------------------";
  static const char older[] = "\xfe\xed\xfe\xed\x00\x00\x00\x01\x00\x00\x00\x01--------------------";

  (void)state;
  assert_int_equal(java_store_make(SPAN(""), SPAN(""), SPAN("none"), &out), -EINVAL);
  assert_int_equal(java_store_make(SPAN(""), SPAN(""), SPAN(PEM_OF("!")), &out), -EINVAL);
  assert_int_equal(java_store_make(SPAN(""), SPAN(""), SPAN(PEM_OF("Y2E=") PEM_OF("Y2E=")), &out), -EINVAL);
  assert_int_equal(java_store_make(SPAN(""), SPAN(""), SPAN(PEM_OF("Y2E=")), &small), -E2BIG);
  assert_int_equal(out.len, 0);
  assert_false(java_store_is_read((struct span){ .ptr = huge, .len = sizeof huge - 1 }));
  assert_false(java_store_is_read((struct span){ .ptr = older, .len = sizeof older - 1 }));
  assert_false(java_store_is_read(SPAN("\xfe\xed\xfe\xed")));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sha1),
    cmocka_unit_test(test_entries),
    cmocka_unit_test(test_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
