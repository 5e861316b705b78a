/* err: one error, filled where it happens and wrapped with context while unwinding.
 *
 * Functions that can fail return 0 (or a count) or a negative errno, and take a struct err * as the last parameter
 * before the ret_ out-parameters. The struct lives on the caller's stack; there is nothing to free. A message reads
 * "part: cause; fix", without a newline; bytes that came from outside are escaped by err_set itself (control
 * characters, and bytes that are no UTF-8, become \xNN), so a message can always go to a terminal.
 */
#ifndef SBX_BASE_ERR_H
#define SBX_BASE_ERR_H

/* Longest message in bytes, with its NUL; longer ones end in "...". */
#define ERR_MESSAGE_MAX 1024

struct err {
  int code; /* positive errno; 0 while nothing failed */
  char message[ERR_MESSAGE_MAX];
};

#define ERR_INIT { .code = 0, .message = "" }

/* Fills err at the origin of a failure. code is a positive errno; returns -code. err may be NULL. */
int err_set(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": " and the text of code (strerror) after the message. */
int err_set_errno(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message. Returns -err->code (-EIO when err is NULL). */
int err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
