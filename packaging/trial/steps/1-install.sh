step "the package before is installed, and serves"
files > before.files
does dpkg -i before.deb
does systemctl --quiet is-active evenkeel.service
is "type" "$(shown Type)" notify
is "user" "$(stat -c %U "/proc/$(shown MainPID)")" evenkeel
has "its first answer" "$(get http://127.0.0.1:8080/)" "evenkeel works"
is "the config's" "$(stat -c '%a %U:%G' /etc/evenkeel/evenkeel.yaml)" "640 root:evenkeel"
is "its folder's" "$(stat -c '%a %U:%G' /etc/evenkeel)" "750 root:evenkeel"
does evenkeel check /etc/evenkeel/evenkeel.yaml
does evenkeel status
does test -s /usr/share/man/man1/evenkeel.1.gz
# shellcheck disable=SC1091
has "completions" "$(. /usr/share/bash-completion/completions/evenkeel && complete -p evenkeel)" _evenkeel
score=$(systemd-analyze --no-pager security evenkeel.service | tail -1)
echo "$score"
[[ $score =~ :\ ([0-9.]+) ]] && awk "BEGIN { exit !(${BASH_REMATCH[1]} <= 2.0) }" || fail "exposed by more than 2.0"
