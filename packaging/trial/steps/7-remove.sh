step "the package is removed: the config stays"
does dpkg --remove evenkeel
does test -e /etc/evenkeel/evenkeel.yaml
is "it listens" "$(ss -Hltn 'sport = :80')" ""
refused test -e /run/evenkeel

step "and installed again: the config is the edited one"
does dpkg -i package.deb
is "the config" "$(cat /etc/evenkeel/evenkeel.yaml)" "$(cat edited.yaml)"
until_ answers http://127.0.0.1/ "from the backend"

step "it is purged: nothing is left"
does systemctl stop backend.service
does dpkg --purge evenkeel
same_files
getent passwd evenkeel && fail "the user is left"
echo "and no user"
