step "the package is upgraded under requests"
load() {
    mkfifo load.end
    python3 client.py 127.0.0.1 80 < load.end > load.said 2>&1 &
    loading=$!
    exec 7> load.end
    rm load.end
}
load_ends() {
    exec 7>&-
    wait "$loading" || fail "requests failed: $(cat load.said)"
    cat load.said
}
load
main=$(shown MainPID)
does dpkg -i package.deb
moved() { [[ $(shown MainPID) != "$main" && $(shown ActiveState) == active ]]; }
until_ moved
is "restarts" "$(shown NRestarts)" 0
is "the edited config" "$(cat /etc/evenkeel/evenkeel.yaml)" "$(cat edited.yaml)"
is "its owner" "$(stat -c '%a %U:%G' /etc/evenkeel/evenkeel.yaml)" "640 root:evenkeel"

step "evenkeel upgrade, by hand"
gone() { ! kill -0 "$main"; }
until_ gone
main=$(shown MainPID)
does evenkeel upgrade
until_ moved
until_ gone
main=$(shown MainPID)
cp /bin/true /trial/broken
refused evenkeel upgrade /trial/broken
is "what runs" "$(shown MainPID)" "$main"
does systemctl reload evenkeel.service
load_ends
