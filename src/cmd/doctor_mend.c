#include "config.h"

#include "cmd/doctor.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MEND_FILE_BYTES (64 * 1024)

struct distribution {
  const char *id; /* ID or a word of ID_LIKE of os-release(5) */
  const char *install;
};

static const struct distribution distributions[] = {
  { "debian", "apt-get install" }, { "ubuntu", "apt-get install" }, { "fedora", "dnf install" },
  { "rhel", "dnf install" },       { "centos", "dnf install" },     { "arch", "pacman -S" },
  { "alpine", "apk add" },         { "suse", "zypper install" },    { "opensuse", "zypper install" },
};

const char *doctor_mend_sudo(void)
{
  return geteuid() == 0 ? "" : "sudo ";
}

static const char *find_install(struct span words)
{
  struct span word;

  while (span_split(&words, ' ', &word)) {
    for (size_t i = 0; i < MEM_COUNT(distributions); i++) {
      if (span_equal_str(word, distributions[i].id))
        return distributions[i].install;
    }
  }
  return NULL;
}

/* ID itself before the families that it is like. */
static const char *read_install(void)
{
  static const struct span labels[] = { SPAN_INIT("ID="), SPAN_INIT("ID_LIKE=") };
  buf_autofree struct buf text = BUF_INIT(MEND_FILE_BYTES);
  const char *found = NULL;

  if (fd_read_file(AT_FDCWD, "/etc/os-release", &text) < 0 && fd_read_file(AT_FDCWD, "/usr/lib/os-release", &text) < 0)
    return NULL;
  for (size_t i = 0; i < MEM_COUNT(labels) && !found; i++) {
    struct span rest = buf_span(&text);
    struct span line;

    while (!found && span_split(&rest, '\n', &line)) {
      if (!span_starts_with(line, labels[i]))
        continue;
      line = span_sub(line, labels[i].len, line.len);
      if (line.len >= 2 && (line.ptr[0] == '"' || line.ptr[0] == '\''))
        line = span_sub(line, 1, line.len - 2);
      found = find_install(line);
    }
  }
  return found;
}

void doctor_mend_install(const char *package, struct buf *out)
{
  const char *install = read_install();

  if (install)
    buf_printf(out, "%s%s %s", doctor_mend_sudo(), install, package);
  else
    buf_printf(out, "install the package %s of this distribution", package);
}

void doctor_mend_quote(const char *path, struct buf *out)
{
  buf_append_byte(out, '\'');
  for (const char *at = path; *at; at++) {
    if (*at == '\'')
      buf_append_str(out, "'\\''");
    else if ((unsigned char)*at < ' ' || *at == '\177')
      buf_append_str(out, "'?'");
    else
      buf_append_byte(out, *at);
  }
  buf_append_byte(out, '\'');
}

/* The installed profile names the usual places of sbx; one that stands elsewhere goes into its copy. */
void doctor_mend_apparmor(const struct doctor *doctor, struct buf *out)
{
  static const char load[] = "apparmor_parser -r /etc/apparmor.d/" SBX_NAME;
  const char *sudo = doctor_mend_sudo();
  bool installed = access(SBX_APPARMOR_PATH, R_OK) == 0;
  bool usual = strcmp(doctor->self, "/usr/bin/sbx") == 0 || strcmp(doctor->self, "/usr/local/bin/sbx") == 0;

  if (installed && usual)
    buf_printf(out, "%scp %s /etc/apparmor.d/" SBX_NAME, sudo, SBX_APPARMOR_PATH);
  else if (installed)
    buf_printf(out,
               "sed 's|^profile " SBX_NAME " .* flags|profile " SBX_NAME
               " \"%s\" flags|' %s | %stee /etc/apparmor.d/" SBX_NAME " >/dev/null",
               doctor->self, SBX_APPARMOR_PATH, sudo);
  else
    buf_printf(out,
               "printf '%%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' "
               "'profile " SBX_NAME " \"%s\" flags=(unconfined) { userns, }' | %stee /etc/apparmor.d/" SBX_NAME
               " >/dev/null",
               doctor->self, sudo);
  buf_printf(out, " && %s%s", sudo, load);
}

const char *doctor_container(void)
{
  static const struct {
    const char *mark;
    const char *name;
  } kinds[] = {
    { "/.dockerenv", "docker" },
    { "/run/.containerenv", "podman" },
    { "/run/systemd/container", "container" },
    { "/run/host/container-manager", "container" },
  };

  for (size_t i = 0; i < MEM_COUNT(kinds); i++) {
    if (access(kinds[i].mark, F_OK) == 0)
      return kinds[i].name;
  }
  return NULL;
}
