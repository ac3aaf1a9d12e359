step "docs/install.md, command by command"
files > before.files
mkdir -p page/packaging "$HOME"/.cargo/bin
cp -r source/packaging/. page/packaging/
cp package.deb page/evenkeel_0.1.0-1_amd64.deb
dpkg-deb -x package.deb unpacked
# The archive, as `packaging/release` makes it.
archive=page/evenkeel-0.1.0-x86_64-linux
mkdir -p "$archive/man" "$archive/completions"
cp unpacked/usr/bin/evenkeel "$archive/"
cp unpacked/usr/share/man/man1/* "$archive/man/" && gunzip "$archive"/man/*.gz
cp unpacked/usr/share/bash-completion/completions/evenkeel "$archive/completions/"
tar -C page -czf page/evenkeel-0.1.0-x86_64-linux.tar.gz evenkeel-0.1.0-x86_64-linux
rm -r "$archive"
# No network and no compiler are here: what cargo would build is there.
cat > /usr/local/bin/cargo <<'END'
#!/bin/sh
case "$*" in
"install --path . --locked") cp /trial/unpacked/usr/bin/evenkeel "$HOME/.cargo/bin/evenkeel" ;;
"uninstall evenkeel") rm "$HOME"/.cargo/bin/evenkeel ;;
*) echo "cargo $*?" >&2; exit 1 ;;
esac
END
chmod 755 /usr/local/bin/cargo
# The servers and the certificates that the page tells of.
for address in 10.0.0.11 10.0.0.12; do ip address add "$address/32" dev lo; done
sed -i 's/127.0.0.1:8001/0.0.0.0:8000/' backend.yaml
does systemd-run --quiet --unit backend /trial/unpacked/usr/bin/evenkeel /trial/backend.yaml
for place in page/shop /etc/ssl/private/shop; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$place.key" -out "$place.pem" 2> /dev/null
done
live=/etc/letsencrypt/live/shop.example.com
mkdir -p "$live"
cp page/shop.pem "$live/fullchain.pem"
cp page/shop.key "$live/privkey.pem"
cd page
python3 ../page.py ../source/docs/install.md ../not-executed || fail "the page does not say what is so"
cd ..
does systemctl stop backend.service
rm -rf /etc/letsencrypt /etc/ssl/private/shop.* /usr/local/bin/cargo "$HOME"/.cargo "$HOME"/.local
rm -rf /usr/local/share/man/man1 "$HOME"/.local
same_files
