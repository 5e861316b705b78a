#include "plan/view.h"

const char *const *view_system_trees(void)
{
  static const char *const list[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/run/current-system",
    "/var/lib/ca-certificates",
    NULL,
  };

  return list;
}

const char *const *view_sys_trees(void)
{
  static const char *const list[] = {
    "/sys/block", "/sys/bus", "/sys/class", "/sys/dev", "/sys/devices", "/sys/kernel/mm", NULL,
  };

  return list;
}

const char *const *view_home_tools(void)
{
  static const char *const list[] = {
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/env",
    ".config/git",
    ".deno/bin",
    ".dotnet",
    ".ghcup",
    ".gitconfig",
    ".local/bin",
    ".local/lib",
    ".local/share/claude/versions", /* Claude Code's own installer */
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/uv",
    ".nix-profile",
    ".npm-global/bin", /* not etc, which may hold a login */
    ".npm-global/lib",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".tool-versions",
    ".volta",
    "anaconda3",
    "go/bin",
    "miniconda3",
    "miniforge3",
    NULL,
  };

  return list;
}

const char *const *view_protected(void)
{
  static const char *const list[] = {
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".husky",
    ".envrc",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude/commands",
    ".claude/agents",
    ".cursor",
    ".codex",
    ".gemini",
    ".sbx.json",
    NULL,
  };

  return list;
}

const char *const *view_home_secrets(void)
{
  static const char *const list[] = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".npm-global/etc/npmrc",
    ".terraform.d/credentials.tfrc.json",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/chromium",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".dotnet/corefx/cryptography/x509stores",
    ".local/share/keyrings",
    ".local/share/uv/credentials",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    NULL,
  };

  return list;
}

const struct view_mask *view_kernel_masks(void)
{
  static const struct view_mask list[] = {
    { "/proc/keys", false }, /* descriptions of the user's keys */
    { "/proc/key-users", false }, /* and how many there are */
    { NULL, false },
  };

  return list;
}

const struct view_mask *view_kernel_masks_root(void)
{
  /* What the OCI runtimes mask, and what only file modes keep from others. */
  static const struct view_mask list[] = {
    { "/proc/acpi", true },
    { "/proc/asound", true },
    { "/proc/kcore", false },
    { "/proc/kmsg", false },
    { "/proc/latency_stats", false },
    { "/proc/sched_debug", false },
    { "/proc/scsi", true },
    { "/proc/timer_list", false },
    { "/proc/timer_stats", false },
    { "/sys/devices/virtual/powercap", true },
    { NULL, false },
  };

  return list;
}

const char *const *view_proc_readonly_root(void)
{
  static const char *const list[] = {
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", NULL,
  };

  return list;
}

const char *const *view_etc_root_only(void)
{
  static const char *const list[] = {
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/ppp",
    "/etc/cups/ssl",
    "/etc/docker/key.json",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/etc/exim4/passwd.client",
    "/etc/ipsec.d/private",
    "/etc/ipsec.secrets",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/luks",
    "/etc/mysql/debian.cnf",
    "/etc/netplan",
    "/etc/postfix/sasl_passwd",
    "/etc/rancher",
    "/etc/samba/private",
    "/etc/sssd",
    "/etc/swanctl",
    NULL,
  };

  return list;
}
