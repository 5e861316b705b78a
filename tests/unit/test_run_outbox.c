/* Messages for which a socket has no room. */
#include "base/fd.h"
#include "run/outbox.h"
#include "unit/unit.h"

#include <errno.h>
#include <sys/socket.h>

struct scene {
  struct outbox outbox;
  int ends[2];
  unsigned sent;
  unsigned received;
};

static void open_scene(struct scene *scene)
{
  *scene = (struct scene){ .sent = 0 };
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, scene->ends), 0);
}

static void close_scene(struct scene *scene)
{
  outbox_clear(&scene->outbox);
  assert_int_equal(scene->outbox.count, 0);
  assert_null(scene->outbox.items[0].bytes);
  fd_close(&scene->ends[0]);
  fd_close(&scene->ends[1]);
}

static int put(struct scene *scene)
{
  unsigned message[2000] = { scene->sent };
  int r = outbox_send(&scene->outbox, scene->ends[0], message, sizeof message);

  scene->sent += r == 0;
  return r;
}

/* Takes what is there; each in its order. */
static void get(struct scene *scene)
{
  unsigned message[2000];

  while (recv(scene->ends[1], message, sizeof message, MSG_DONTWAIT) == (ssize_t)sizeof message)
    assert_int_equal(message[0], scene->received++);
}

static void test_order(void **state)
{
  struct scene scene;

  (void)state;
  open_scene(&scene);
  while (scene.outbox.count < 5)
    assert_int_equal(put(&scene), 0);
  outbox_flush(&scene.outbox, scene.ends[0]);
  assert_int_equal(scene.outbox.count, 5);
  get(&scene);
  assert_int_equal(scene.received, scene.sent - 5);
  assert_int_equal(put(&scene), 0); /* behind those that wait, though there is room */
  assert_int_equal(scene.outbox.count, 6);
  outbox_flush(&scene.outbox, scene.ends[0]);
  get(&scene);
  assert_int_equal(scene.received, scene.sent);
  close_scene(&scene);
}

static void test_bound(void **state)
{
  struct scene scene;

  (void)state;
  open_scene(&scene);
  while (scene.outbox.count < OUTBOX_MAX)
    assert_int_equal(put(&scene), 0);
  assert_int_equal(put(&scene), -ENOBUFS);
  assert_int_equal(scene.outbox.count, OUTBOX_MAX);
  close_scene(&scene);
}

/* Nobody reads any more: nothing is kept for ever. */
static void test_end(void **state)
{
  struct scene scene;

  (void)state;
  open_scene(&scene);
  while (scene.outbox.count < 2)
    assert_int_equal(put(&scene), 0);
  fd_close(&scene.ends[1]);
  outbox_flush(&scene.outbox, scene.ends[0]);
  assert_int_equal(scene.outbox.count, 0);
  assert_int_equal(put(&scene), -EPIPE);
  close_scene(&scene);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_order),
    cmocka_unit_test(test_bound),
    cmocka_unit_test(test_end),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
