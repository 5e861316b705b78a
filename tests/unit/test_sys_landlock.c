#include "base/fd.h"
#include "sys/landlock.h"
#include "unit/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/* Rights only ever grow with the version, and what one version knows is what its documentation lists. */
static void test_known_rights(void **state)
{
  static const struct {
    int abi;
    unsigned fs; /* number of rights */
    unsigned net;
    unsigned scope;
  } rows[] = {
    { 0, 0, 0, 0 },  { 1, 13, 0, 0 }, { 2, 14, 0, 0 }, { 3, 15, 0, 0 },
    { 4, 15, 2, 0 }, { 5, 16, 2, 0 }, { 6, 16, 2, 2 }, { 99, 16, 2, 2 },
  };

  (void)state;
  for (size_t i = 0; i < MEM_COUNT(rows); i++) {
    struct landlock_rights rights = landlock_rights_known(rows[i].abi);

    assert_int_equal(__builtin_popcountll(rights.fs), rows[i].fs);
    assert_int_equal(__builtin_popcountll(rights.net), rows[i].net);
    assert_int_equal(__builtin_popcountll(rights.scope), rows[i].scope);
  }
}

static void test_nothing_wanted(void **state)
{
  struct landlock_rights none = { 0 };
  struct err err = ERR_INIT;
  int ruleset = -1;

  (void)state;
  assert_int_equal(landlock_create(&none, &err, NULL, &ruleset), -EOPNOTSUPP);
  assert_int_equal(ruleset, -1);
}

static bool opens(const char *path, int flags)
{
  fd_autoclose int fd = open(path, flags | O_CLOEXEC);

  return fd >= 0;
}

static bool binds(uint16_t port)
{
  fd_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in local = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = { htonl(INADDR_LOOPBACK) } };

  return bind(fd, (const struct sockaddr *)&local, sizeof local) == 0 || errno == EADDRINUSE;
}

/* In a child: files only below /usr and only for reading, TCP only on one port. A number per check that fails. */
static int confined_child(const struct landlock_rights *handled, int ruleset)
{
  fd_autoclose int usr = open("/usr", O_PATH | O_CLOEXEC);
  struct err err = ERR_INIT;

  if (landlock_allow_path(ruleset, usr, READ_RIGHTS, &err) < 0)
    return 1;
  if ((handled->net & LANDLOCK_ACCESS_NET_BIND_TCP) &&
      landlock_allow_port(ruleset, 47123, LANDLOCK_ACCESS_NET_BIND_TCP, &err) < 0)
    return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || landlock_enforce(ruleset, &err) < 0)
    return 3;
  if (!opens("/usr", O_RDONLY | O_DIRECTORY))
    return 4;
  if (opens("/etc", O_RDONLY | O_DIRECTORY) || opens("/dev/null", O_WRONLY))
    return 5;
  if ((handled->net & LANDLOCK_ACCESS_NET_BIND_TCP) && (!binds(47123) || binds(47124)))
    return 6;
  return 0;
}

static void test_enforced(void **state)
{
  struct landlock_rights want = landlock_rights_known(landlock_abi());
  struct landlock_rights handled = { 0 };
  struct err err = ERR_INIT;
  fd_autoclose int ruleset = -1;
  int status = 0;
  int r = landlock_create(&want, &err, &handled, &ruleset);
  pid_t child;

  (void)state;
  if (landlock_abi() == 0) {
    assert_int_equal(r, -EOPNOTSUPP);
    return;
  }
  assert_int_equal(r, 0);
  assert_true(handled.fs == want.fs && handled.net == want.net && handled.scope == want.scope);
  child = fork();
  assert_true(child >= 0);
  if (child == 0)
    _exit(confined_child(&handled, ruleset));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_errors(void **state)
{
  struct err err = ERR_INIT;

  (void)state;
  assert_true(landlock_allow_path(-1, -1, READ_RIGHTS, &err) < 0);
  assert_true(landlock_allow_port(-1, 1, LANDLOCK_ACCESS_NET_BIND_TCP, &err) < 0);
  assert_true(landlock_enforce(-1, &err) < 0);
  assert_true(err.code > 0 && strncmp(err.message, "landlock: ", 10) == 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_known_rights),
    cmocka_unit_test(test_nothing_wanted),
    cmocka_unit_test(test_enforced),
    cmocka_unit_test(test_errors),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
