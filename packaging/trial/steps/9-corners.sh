step "what administrators do beside that"
does dpkg -i before.deb
does cp edited.yaml /etc/evenkeel/evenkeel.yaml
sed -i 's/127.0.0.1, port: 8001/127.0.0.1, port: 8000/' /etc/evenkeel/evenkeel.yaml
does systemd-run --quiet --unit backend /trial/unpacked/usr/bin/evenkeel /trial/backend.yaml
until_ answers http://127.0.0.1:8000/ "from the backend"

step "sockets of systemd outlast an upgrade of the package, also where nobody has come yet"
does systemctl disable --quiet --now evenkeel.service
mkdir -p /etc/systemd/system/evenkeel.socket.d
printf '[Socket]\nListenStream=\nListenStream=80\n' > /etc/systemd/system/evenkeel.socket.d/ports.conf
does systemctl daemon-reload
does systemctl enable --quiet --now evenkeel.socket
does dpkg -i package.deb
is "the socket" "$(systemctl is-active evenkeel.socket)" active
systemctl reset-failed
has "who comes is answered" "$(get http://127.0.0.1/)" "from the backend"

step "a service that is masked stays so, and one with another config is upgraded"
does systemctl disable --quiet --now evenkeel.socket
does systemctl stop evenkeel.service
does systemctl mask --quiet evenkeel.service
does dpkg -i before.deb
is "it" "$(systemctl is-enabled evenkeel.service) $(systemctl is-active evenkeel.service)" "masked inactive"
does systemctl unmask --quiet evenkeel.service
rm -r /etc/systemd/system/evenkeel.socket.d
mkdir -p /etc/systemd/system/evenkeel.service.d
cp /etc/evenkeel/evenkeel.yaml /etc/evenkeel/another.yaml
chgrp evenkeel /etc/evenkeel/another.yaml
printf '[Service]\nExecStart=\nExecStart=/usr/bin/evenkeel --config /etc/evenkeel/another.yaml\n' > /etc/systemd/system/evenkeel.service.d/config.conf
does systemctl daemon-reload
does systemctl enable --quiet evenkeel.service
restart
main=$(shown MainPID)
does dpkg -i package.deb
until_ moved
rm -r /etc/systemd/system/evenkeel.service.d
does systemctl daemon-reload
restart

step "who rotates the log ends nobody: neither commands nor a process that takes over"
for _ in $(seq 10); do
    logrotate --force /etc/logrotate.d/evenkeel &
    does systemctl reload evenkeel.service
    wait "$!"
done
does evenkeel upgrade &
upgrading=$!
for _ in $(seq 5); do logrotate --force /etc/logrotate.d/evenkeel; done
wait "$upgrading"

step "a config that is gone is said to be, and one that comes again is the service's"
does rm /etc/evenkeel/evenkeel.yaml
said=$(dpkg -i package.deb 2>&1)
has "it says" "$said" "there is no /etc/evenkeel/evenkeel.yaml"
does dpkg --force-confmiss -i package.deb
is "the config's" "$(stat -c '%a %U:%G' /etc/evenkeel/evenkeel.yaml)" "640 root:evenkeel"

step "keys that stay behind stay their group's, and sockets do not"
install -m 640 -o root -g evenkeel /dev/null /etc/evenkeel/shop.key
does systemctl stop evenkeel.service
does systemctl start evenkeel.socket evenkeel.service
does dpkg --purge evenkeel
is "the socket" "$(systemctl is-active evenkeel.socket)" inactive
is "the key" "$(stat -c '%a %U:%G' /etc/evenkeel/shop.key)" "640 root:evenkeel"
does dpkg -i package.deb
does rm /etc/evenkeel/shop.key /etc/evenkeel/another.yaml
does dpkg --purge evenkeel
getent passwd evenkeel && fail "the user is left"
does systemctl stop backend.service
