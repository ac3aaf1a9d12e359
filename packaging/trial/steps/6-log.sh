step "the access log is rotated, and nothing is lost"
until_ answers http://127.0.0.1/ "from the backend"
get http://127.0.0.1/before-the-rotation > /dev/null
logged() { grep -q "$1" "$2"; }
until_ logged before-the-rotation /var/log/evenkeel/access.log
does logrotate --force /etc/logrotate.d/evenkeel
until_ test -e /var/log/evenkeel/access.log
get http://127.0.0.1/after-the-rotation > /dev/null
until_ logged after-the-rotation /var/log/evenkeel/access.log
does grep -c before-the-rotation /var/log/evenkeel/access.log.1

step "notify-reload, where systemd knows it"
version=$(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')
if ((version >= 253)); then
    mkdir -p /etc/systemd/system/evenkeel.service.d
    cp source/packaging/systemd/evenkeel.service.d/notify-reload.conf /etc/systemd/system/evenkeel.service.d/
    does systemctl daemon-reload
    restart
    is "type" "$(shown Type)" notify-reload
    does systemctl reload evenkeel.service
    does evenkeel upgrade
    does systemctl reload evenkeel.service
    rm -r /etc/systemd/system/evenkeel.service.d
    does systemctl daemon-reload
else
    echo "systemd $version does not"
fi
