step "a process that is killed is started again"
main=$(shown MainPID)
kill -9 "$main"
until_ moved
until_ answers http://127.0.0.1/ "from the backend"
is "restarts" "$(shown NRestarts)" 1

step "after an upgrade, too: it is the new process that systemd watches"
does evenkeel upgrade
main=$(shown MainPID)
kill -9 "$main"
until_ moved
until_ answers http://127.0.0.1/ "from the backend"

if [[ -e debug ]]; then
    step "a worker that is stuck is a reason to start anew"
    mkdir -p /etc/systemd/system/evenkeel.service.d
    cat > /etc/systemd/system/evenkeel.service.d/stuck.conf <<'END'
[Service]
WatchdogSec=4s
Environment=EVENKEEL_STUCK_WHILE=/run/stuck
ExecStart=
ExecStart=/trial/debug --config /etc/evenkeel/evenkeel.yaml
END
    does systemctl daemon-reload
    restart
    until_ answers http://127.0.0.1/ "from the backend"
    main=$(shown MainPID)
    touch /run/stuck
    until_ moved
    rm /run/stuck
    until_ answers http://127.0.0.1/ "from the backend"
    journalctl --no-pager --unit evenkeel --lines 400 | grep -o 'a worker .*\|Watchdog timeout.*'
    rm -r /etc/systemd/system/evenkeel.service.d
    does systemctl daemon-reload
    restart
fi

step "a stop that had to cut connections is a stop"
restart
until_ answers http://127.0.0.1/ "from the backend"
python3 -c 'import socket, sys; s = socket.create_connection(("127.0.0.1", 80)); s.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"); print("sent", flush=True); sys.stdin.read()' \
    < <(sleep 60) > half.said &
half=$!
until_ test -s half.said
does systemctl stop evenkeel.service
is "how it ended" "$(shown Result) $(shown ActiveState)" "success inactive"
kill "$half" 2> /dev/null
does systemctl start evenkeel.service
