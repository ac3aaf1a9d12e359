step "ports that systemd holds: who comes during a restart waits, and is answered"
sed -i '/ListenStream=443/d' /lib/systemd/system/evenkeel.socket
does systemctl daemon-reload
does systemctl stop evenkeel.service
does systemctl start evenkeel.socket
has "the first who comes starts it" "$(get http://127.0.0.1/)" "from the backend"
load
restart
restart
does evenkeel upgrade
# On a connection that is kept a restart ends at a request's border: the client sees that and connects again.
exec 7>&-
wait "$loading"
cat load.said
grep -q "refused" load.said && fail "somebody was refused"
does systemctl stop evenkeel.socket evenkeel.service
does systemctl start evenkeel.service

step "keys that only root may read"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout /etc/ssl/private/shop.key -out /etc/ssl/private/shop.pem 2> /dev/null
chmod 600 /etc/ssl/private/shop.*
mkdir -p /etc/systemd/system/evenkeel.service.d
cat > /etc/systemd/system/evenkeel.service.d/keys.conf <<'END'
[Service]
LoadCredential=shop.pem:/etc/ssl/private/shop.pem
LoadCredential=shop.key:/etc/ssl/private/shop.key
END
cat >> /etc/evenkeel/evenkeel.yaml <<'END'
  shop:
    protocol: https
    listener: "*:443"
    tls:
      cert_file: ${CREDENTIALS_DIRECTORY:-/etc/ssl/private}/shop.pem
      cert_key: ${CREDENTIALS_DIRECTORY:-/etc/ssl/private}/shop.key
    backends:
      - {host: 127.0.0.1, port: 8001}
END
does evenkeel check /etc/evenkeel/evenkeel.yaml
does systemctl daemon-reload
restart
secure() { [[ $(get --cacert /etc/ssl/private/shop.pem https://localhost/) == *"from the backend"* ]]; }
until_ secure
main=$(shown MainPID)
does evenkeel upgrade
until_ moved
until_ secure
does systemctl reload evenkeel.service
rm -r /etc/systemd/system/evenkeel.service.d /etc/ssl/private/shop.*
cp edited.yaml /etc/evenkeel/evenkeel.yaml
does systemctl daemon-reload
restart
