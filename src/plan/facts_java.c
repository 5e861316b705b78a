/* Where Java keeps the certificates that it trusts: each installation in a file below its own directory, which mostly
 * is a link to one of the system's. */
#include "plan/facts.h"

#include "base/fd.h"
#include "sys/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define STORE_BYTES (4 * 1024 * 1024)
#define INSTALLATIONS_MAX 256 /* entries looked at in one directory */

static const char store[] = "lib/security/cacerts";

static bool has_store(const struct facts *facts, const char *real)
{
  for (size_t i = 0; i < facts->java_count; i++)
    if (strcmp(facts->java[i].real, real) == 0)
      return true;
  return false;
}

/* What is in the workspace is the command's own to change. What cannot be read is not there for Java either. */
static int read_store(const char *name, struct facts *facts)
{
  path_object_autofree struct path_object object = { .real = NULL };
  buf_autofree struct buf bytes = BUF_INIT(STORE_BYTES);
  struct fact_java *java = &facts->java[facts->java_count];

  if (facts->java_count == FACTS_JAVA_MAX || path_resolve(name, &object) < 0 || !S_ISREG(object.mode) ||
      path_is_within(object.real, facts->workspace) || has_store(facts, object.real) ||
      fd_read_file(AT_FDCWD, object.real, &bytes) < 0)
    return 0;
  java->len = bytes.len;
  java->bytes = buf_steal(&bytes);
  java->real = mem_steal(object.real);
  facts->java_count++;
  return java->bytes ? 0 : -ENOMEM;
}

/* That of the installation at a path. Before version 9 the run-time environment is a part of it. */
static int read_installation(const char *top, struct facts *facts)
{
  mem_autofree char *path = path_join(top, store);
  mem_autofree char *part = path_join(top, "jre");
  mem_autofree char *older = part ? path_join(part, store) : NULL;
  int r = path && older ? read_store(path, facts) : -ENOMEM;

  return r < 0 ? r : read_store(older, facts);
}

static int read_directory(const char *path, struct facts *facts)
{
  DIR *dir = opendir(path);
  struct dirent *entry;
  int r = 0;

  for (size_t i = 0; r == 0 && dir && i < INSTALLATIONS_MAX && (entry = readdir(dir)); i++) {
    mem_autofree char *top = entry->d_name[0] == '.' ? NULL : path_join(path, entry->d_name);

    if (top)
      r = read_installation(top, facts);
  }
  if (dir)
    closedir(dir);
  return r;
}

int facts_read_java(struct err *err, struct facts *facts)
{
  static const char *const files[] = { "/etc/ssl/certs/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts",
                                       "/var/lib/ca-certificates/java-cacerts" };
  static const char *const directories[] = { "/usr/lib/jvm", "/usr/lib64/jvm", "/usr/java", "/opt/java" };
  static const char *const of_home[] = { ".sdkman/candidates/java", ".asdf/installs/java",
                                         ".local/share/mise/installs/java" };
  const char *named = facts_getenv(facts, "JAVA_HOME");
  int r = named && named[0] == '/' ? read_installation(named, facts) : 0;

  for (size_t i = 0; i < MEM_COUNT(files) && r == 0; i++)
    r = read_store(files[i], facts);
  for (size_t i = 0; i < MEM_COUNT(directories) && r == 0; i++)
    r = read_directory(directories[i], facts);
  for (size_t i = 0; i < MEM_COUNT(of_home) && r == 0; i++) {
    mem_autofree char *path = path_join(facts->home, of_home[i]);

    r = path ? read_directory(path, facts) : -ENOMEM;
  }
  return r < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}
