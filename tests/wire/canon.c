/* Policy language on standard input → the canonical text that sbx-proxy reads, on standard output. */
#include "base/fd.h"
#include "policy/limits.h"
#include "policy/print.h"
#include "policy/validate.h"

#include <stdio.h>
#include <unistd.h>

static int convert(struct err *err, struct buf *out)
{
  buf_autofree struct buf text = BUF_INIT(LIMITS_POLICY_BYTES);
  layers_autofree struct layers *layers = layers_new();
  policy_autofree struct policy *policy = NULL;
  strv_autofree struct strv notes = STRV_INIT;
  int r = layers ? fd_read_all(STDIN_FILENO, &text) : -1;

  if (r == 0)
    r = layers_add_text(layers, LAYER_FILE, "standard input", buf_span(&text), err);
  if (r == 0)
    r = policy_validate(layers, err, &notes, &policy);
  if (r == 0)
    policy_print(policy, true, out);
  return r ? r : buf_error(out);
}

int main(void)
{
  buf_autofree struct buf out = BUF_INIT(LIMITS_POLICY_PRINT_BYTES);
  struct err err = ERR_INIT;

  if (convert(&err, &out) < 0) {
    fprintf(stderr, "canon: %s\n", err.message);
    return 1;
  }
  return fd_write_all(STDOUT_FILENO, buf_span(&out)) < 0;
}
