# bash completion for sbx. tests/lint/completions.py holds the words against `sbx COMMAND --help`.

_sbx_commands='run shell check show why log learn credential doctor trust init'
_sbx_policy_options='--policy --profile --workspace --allow --deny --network --forward --publish --read --write --hide
  --unprotect --home --unix-socket --credential --env --syscalls --memory --cpus --pids --timeout --audit -q --quiet -v --verbose'

_sbx_options_of()
{
  case $1 in
  run) printf '%s ' "$_sbx_policy_options" --fd --ask --ask-timeout --engine --summary --dry-run --json --help ;;
  shell) printf '%s ' "$_sbx_policy_options" --fd --ask --ask-timeout --engine --summary --dry-run --help ;;
  learn) printf '%s ' "$_sbx_policy_options" --fd --engine --summary --hosts-only -o --output --help ;;
  check) printf '%s ' "$_sbx_policy_options" --json --help ;;
  show) printf '%s ' "$_sbx_policy_options" --plan --json --help ;;
  credential) printf '%s ' list test "$_sbx_policy_options" --help ;;
  why) printf '%s ' "$_sbx_policy_options" -X --method --json --help ;;
  trust | init) printf '%s ' --workspace -q --quiet -v --verbose --help ;;
  log) printf '%s ' -f --follow --json --help ;;
  doctor) printf '%s ' --json --help ;;
  esac
}

# _sbx_value OPTION: completes the argument of an option; fails where it takes none.
_sbx_value()
{
  case $1 in
  --policy | --audit | -o | --output) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
  --workspace) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
  --read | --write | --hide | --unprotect | --unix-socket)
    compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    ;;
  --profile)
    mapfile -t COMPREPLY < <(compgen -W 'default strict offline git node python rust go claude codex' -- "$cur")
    ;;
  --credential) mapfile -t COMPREPLY < <(compgen -W 'github anthropic openai npm pypi gcp' -- "$cur") ;;
  --network) mapfile -t COMPREPLY < <(compgen -W 'proxy none host' -- "$cur") ;;
  --home) mapfile -t COMPREPLY < <(compgen -W 'private tmpfs host' -- "$cur") ;;
  --syscalls) mapfile -t COMPREPLY < <(compgen -W 'nesting ptrace i386' -- "$cur") ;;
  --engine) mapfile -t COMPREPLY < <(compgen -W 'auto bwrap' -- "$cur") ;;
  --summary) mapfile -t COMPREPLY < <(compgen -W 'auto always never' -- "$cur") ;;
  --env) mapfile -t COMPREPLY < <(compgen -e -- "$cur") ;;
  --allow | --deny) mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur") ;;
  --forward | --publish | --fd | --memory | --cpus | --pids | --timeout | --ask-timeout) COMPREPLY=() ;;
  *) return 1 ;;
  esac
}

# The index of the first word that is neither an option of `run` nor its argument.
_sbx_command_at()
{
  local at=$1
  while ((at < COMP_CWORD)); do
    case ${COMP_WORDS[at]} in
    --) printf '%s\n' $((at + 1)) && return ;;
    --ask) [[ ${COMP_WORDS[at + 1]-} == fd ]] && at=$((at + 3)) ;; # fd:N is three words
    -q | --quiet | -v | --verbose | --hosts-only | --dry-run | --help | --json | --plan | --*=*) ;;
    -*) at=$((at + 1)) ;;
    *) break ;;
    esac
    at=$((at + 1))
  done
  printf '%s\n' "$at"
}

_sbx_run()
{
  local at
  at=$(_sbx_command_at 2)
  if ((at < COMP_CWORD)); then
    declare -F _command_offset >/dev/null && _command_offset "$at"
  elif _sbx_value "$prev"; then
    :
  elif [[ $cur == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_sbx_options_of "${COMP_WORDS[1]}")" -- "$cur")
  else
    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
  fi
}

_sbx()
{
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "$_sbx_commands --help --version" -- "$cur")
    return
  fi
  case ${COMP_WORDS[1]} in
  run | shell | learn) _sbx_run ;;
  *)
    if [[ ${COMP_WORDS[1]} != log && ${COMP_WORDS[1]} != doctor ]] && _sbx_value "$prev"; then
      :
    elif [[ $cur == -* || ${COMP_WORDS[1]} != check ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$(_sbx_options_of "${COMP_WORDS[1]}")" -- "$cur")
    else
      compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
    ;;
  esac
}

complete -F _sbx sbx
