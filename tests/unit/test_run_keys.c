/* Values that are made of an id, a secret key and a token (fetch_keys.h). */
#include "base/clock.h"
#include "policy/limits.h"
#include "run/fetch_keys.h"
#include "unit/policy_make.h"
#include "unit/unit.h"

#define JSON(more) "{\"Version\": 1, \"AccessKeyId\": \"ID\", \"SecretAccessKey\": \"hunter/2+=\"" more "}"

static void test_texts(void **state)
{
  static const struct {
    const char *text;
    const char *value; /* NULL: an error */
    const char *error; /* a part of it */
  } rows[] = {
    { JSON(""), "ID hunter/2+=", NULL },
    { "\n " JSON(", \"SessionToken\": \"T==\"") "\n", "ID hunter/2+= T==", NULL },
    { JSON(", \"SessionToken\": \"\", \"Expiration\": null"), "ID hunter/2+=", NULL },
    { JSON(", \"SessionToken\": null, \"Expiration\": \"2999-01-01T00:00:00+00:00\""), "ID hunter/2+=", NULL },
    { JSON(", \"Expiration\": \"2001-01-01T00:00:00Z\""), NULL, "has expired already" },
    { JSON(", \"Expiration\": \"hunter\""), NULL, "\"Expiration\" is no time" },
    { "{\"AccessKeyId\": \"ID\"}", NULL, "\"AccessKeyId\" is there without \"SecretAccessKey\"" },
    { "{\"SecretAccessKey\": \"hunter2\"}", NULL, "\"SecretAccessKey\" is there without \"AccessKeyId\"" },
    { "{\"AccessKeyId\": \"a/b\", \"SecretAccessKey\": \"hunter2\"}", NULL, "\"AccessKeyId\" has a byte" },
    { "{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"hunter 2\"}", NULL, "\"SecretAccessKey\" has a byte" },
    { "{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"hunter\\n2\"}", NULL, "\"SecretAccessKey\" has a byte" },
    { JSON(", \"SessionToken\": \"a b\""), NULL, "\"SessionToken\" has a byte" },
    { "{\"AccessKeyId\": 1, \"SecretAccessKey\": 2}", NULL, "has no JSON with strings" },
    { "{hunter2", NULL, "has no JSON with strings" },
    { "", NULL, "has neither JSON" },
    { "hunter2", NULL, "has neither JSON" },
    { "[default]\naws_access_key_id=ID\naws_secret_access_key=hunter/2+=\n", "ID hunter/2+=", NULL },
    { "# mine\r\n[other]\r\naws_access_key_id = X\r\n[default]\r\naws_access_key_id = ID \r\n"
      "AWS_SECRET_ACCESS_KEY = hunter/2+= \r\naws_session_token = T\r\nregion = x\r\n[more]\r\naws_session_token = "
      "Y\r\n",
      "ID hunter/2+= T", NULL },
    { "[default]\naws_access_key_id=ID\n[x]\naws_secret_access_key=hunter2\n", NULL,
      "aws_access_key_id is there without aws_secret_access_key" },
    { "[profile default]\naws_access_key_id=ID\naws_secret_access_key=hunter2\n", NULL, "has neither JSON" },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    secret_autofree struct secret value = SECRET_INIT;
    struct err err = ERR_INIT;
    uint64_t valid_ms = 1;
    int r;

    assert_int_equal(secret_new(LIMITS_SECRET_BYTES, &err, &value), 0);
    r = fetch_keys_text(span_of(rows[i].text), &err, &value, &valid_ms);
    unit_assert_row((r == 0) == !!rows[i].value, rows[i].text, err.message);
    if (r == 0)
      unit_assert_row(span_equal_str((struct span){ value.bytes, value.len }, rows[i].value), rows[i].text,
                      value.bytes);
    else
      unit_assert_row(strstr(err.message, rows[i].error) && !strstr(err.message, "hunter"), rows[i].text, err.message);
    unit_assert_row(r < 0 || (valid_ms > 0) == !!strstr(rows[i].text, "2999"), rows[i].text, "time");
  }
}

static void test_large(void **state)
{
  static char text[LIMITS_SECRET_OUTPUT_BYTES];

  (void)state;
  for (int more = 0; more <= 1; more++) {
    secret_autofree struct secret value = SECRET_INIT;
    struct err err = ERR_INIT;
    uint64_t valid_ms;
    int len =
        snprintf(text, sizeof text, "[default]\naws_access_key_id=ID\naws_secret_access_key=S\naws_session_token=");

    memset(text + len, 'x', (size_t)(LIMITS_SECRET_BYTES - 5 + more));
    text[len + LIMITS_SECRET_BYTES - 5 + more] = '\0';
    assert_int_equal(secret_new(LIMITS_SECRET_BYTES, &err, &value), 0);
    assert_int_equal(fetch_keys_text(span_of(text), &err, &value, &valid_ms), more ? -EINVAL : 0);
    assert_int_equal(value.len, more ? 0 : LIMITS_SECRET_BYTES);
  }
}

static void test_variables(void **state)
{
  static const struct {
    const char *entries[3];
    const char *value;
    const char *error;
    bool checked; /* before anything is started */
  } rows[] = {
    { { "A=id", "B=hunter2", NULL }, "id hunter2", NULL, true },
    { { "A=id", "B=hunter2\n", "C=t" }, "id hunter2 t", NULL, true },
    { { "A=id", "B=hunter2", "C=" }, "id hunter2", NULL, true },
    { { NULL }, NULL, "the variables A and B are not set", true },
    { { "A=id", NULL }, NULL, "the variable A is set and B is not; set both", false },
    { { "A=id", "B=", NULL }, NULL, "the variable A is set and B is not; set both", false },
    { { "B=hunter2", NULL }, NULL, "the variable B is set and A is not; set both", false },
    { { "A=id", "B=hun ter", NULL }, NULL, "B has a byte", true },
  };
  policy_autofree struct policy *policy =
      make_policy("{\"credentials\": {\"aws\": {\"source\": {\"env\": [\"A\", \"B\", \"C\"]}}}}");

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    secret_autofree struct secret value = SECRET_INIT;
    struct facts facts = FACTS_INIT;
    struct err err = ERR_INIT;
    int r;

    for (size_t j = 0; j < 3 && rows[i].entries[j]; j++)
      assert_int_equal(strv_add(&facts.environment, rows[i].entries[j]), 0);
    assert_int_equal(secret_new(LIMITS_SECRET_BYTES, &err, &value), 0);
    r = fetch_keys_variables(&policy->credentials.items[0].source.words, &facts, &err, &value);
    unit_assert_row((r == 0) == !!rows[i].value, rows[i].entries[0], err.message);
    if (r == 0)
      unit_assert_row(span_equal_str((struct span){ value.bytes, value.len }, rows[i].value), rows[i].value,
                      value.bytes);
    else
      unit_assert_row(strstr(err.message, rows[i].error) && !strstr(err.message, "hun"), rows[i].error, err.message);
    unit_assert_row((fetch_keys_check(policy, &facts, &err) == 0) == rows[i].checked, rows[i].entries[0], err.message);
    facts_free(&facts);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_texts),
    cmocka_unit_test(test_large),
    cmocka_unit_test(test_variables),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
