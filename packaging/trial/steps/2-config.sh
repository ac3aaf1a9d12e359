step "its config is changed"
cat > backend.yaml <<'END'
name: backend
admin: {socket: "off"}
listeners: {all: {bind: 127.0.0.1:8001, routes: [{respond: {status: 200, body: "from the backend\n"}}]}}
END
does systemd-run --quiet --unit backend evenkeel /trial/backend.yaml
cat > edited.yaml <<'END'
# Edited by the administrator.
access_log: {path: /var/log/evenkeel/access.log, format: combined}
shutdown_timeout: 5s
targets:
  web:
    protocol: http
    listener: "*:80"
    backends:
      - {host: 127.0.0.1, port: 8001}
END
cp edited.yaml /etc/evenkeel/evenkeel.yaml
does systemctl reload evenkeel.service
until_ answers http://127.0.0.1/ "from the backend"
main=$(shown MainPID)
echo "what systemd is told: $(shown StatusText)"
grep CapEff "/proc/$main/status"
echo "targets: {web: {listener: nonsense}}" > /etc/evenkeel/evenkeel.yaml
refused systemctl reload evenkeel.service
cp edited.yaml /etc/evenkeel/evenkeel.yaml
does systemctl reload evenkeel.service
is "what runs" "$(shown MainPID) $(shown ActiveState)" "$main active"
has "and serves" "$(get http://127.0.0.1/)" "from the backend"
