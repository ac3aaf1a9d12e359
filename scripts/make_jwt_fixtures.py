#!/usr/bin/env python3
"""Writes fixtures/jwt: two key sets, and tokens of every kind with what must become of each.

The tokens are put together by hand and signed by OpenSSL (the package `cryptography`), another library than the one that verifies
them. Every run makes new keys; the private ones are nowhere kept. Times hang on NOW, which the tests hold as well.
"""

import base64
import hashlib
import hmac
import json
import pathlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

NOW = 1_800_000_000
FAR = 32_503_680_000  # the year 3000: for tests over real sockets, whose clock is the wall's
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "jwt"


def b64(data):
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, length=None):
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


P256 = ec.generate_private_key(ec.SECP256R1())
P256_NEXT = ec.generate_private_key(ec.SECP256R1())
P256_OTHER = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())
RSA = rsa.generate_private_key(65537, 2048)
ED = ed25519.Ed25519PrivateKey.generate()


def curve(key, crv, length, **more):
    numbers = key.public_key().public_numbers()
    return {"kty": "EC", "crv": crv, "x": number(numbers.x, length), "y": number(numbers.y, length), **more}


RSA_NUMBERS = RSA.public_key().public_numbers()
RSA_JWK = {"kty": "RSA", "n": number(RSA_NUMBERS.n), "e": number(RSA_NUMBERS.e), "kid": "rsa", "use": "sig"}
RAW = serialization.Encoding.Raw, serialization.PublicFormat.Raw
KEYS = [
    curve(P256, "P-256", 32, kid="p256", use="sig", alg="ES256"),
    curve(P384, "P-384", 48, kid="p384"),
    RSA_JWK,
    {"kty": "OKP", "crv": "Ed25519", "x": b64(ED.public_key().public_bytes(*RAW)), "kid": "ed"},
]
NEXT = [curve(P256_NEXT, "P-256", 32, kid="next")]


def raw(der, length):
    r, s = utils.decode_dss_signature(der)
    return r.to_bytes(length, "big") + s.to_bytes(length, "big")


def pss(digest):
    return padding.PSS(mgf=padding.MGF1(digest), salt_length=digest.digest_size)


SIGNERS = {
    "ES256": lambda data: raw(P256.sign(data, ec.ECDSA(hashes.SHA256())), 32),
    "ES384": lambda data: raw(P384.sign(data, ec.ECDSA(hashes.SHA384())), 48),
    "RS256": lambda data: RSA.sign(data, padding.PKCS1v15(), hashes.SHA256()),
    "RS384": lambda data: RSA.sign(data, padding.PKCS1v15(), hashes.SHA384()),
    "RS512": lambda data: RSA.sign(data, padding.PKCS1v15(), hashes.SHA512()),
    "PS256": lambda data: RSA.sign(data, pss(hashes.SHA256()), hashes.SHA256()),
    "PS384": lambda data: RSA.sign(data, pss(hashes.SHA384()), hashes.SHA384()),
    "PS512": lambda data: RSA.sign(data, pss(hashes.SHA512()), hashes.SHA512()),
    "EdDSA": ED.sign,
}
KIDS = {"ES256": "p256", "ES384": "p384", "EdDSA": "ed"}
CLAIMS = {"iss": "https://id.example", "aud": "shop", "sub": "alice", "iat": NOW - 10, "nbf": NOW - 10, "exp": NOW + 600}
LEFT_OUT = object()


def header(alg="ES256", **more):
    fields = {"alg": alg, "typ": "JWT", "kid": KIDS.get(alg, "rsa"), **more}
    return {name: value for name, value in fields.items() if value is not LEFT_OUT}


def claims(**more):
    return {name: value for name, value in {**CLAIMS, **more}.items() if value is not LEFT_OUT}


def text(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def token(head=None, body=None, sign="ES256"):
    """A token; header and claims as objects or as JSON texts; `sign`: an algorithm, or what makes a signature of bytes."""
    head = header() if head is None else head
    body = claims() if body is None else body
    data = f"{b64(text(head))}.{b64(text(body))}"
    sign = SIGNERS.get(sign, sign) if isinstance(sign, str) else sign
    return f"{data}.{b64(sign(data.encode()))}"


PEM = P256.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
RSA_PEM = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def mac(secret, digest=hashlib.sha256):
    return lambda data: hmac.new(secret, data, digest).digest()


def parts(index, change):
    """A good token with one of its three parts changed."""
    all_parts = token().split(".")
    all_parts[index] = change(all_parts[index])
    return ".".join(all_parts)


def flipped(data):
    return data[:-3] + ("A" if data[-3] != "A" else "B") + data[-2:]


def of(signature):
    return lambda data: signature


def number_pair(r, s):
    return of(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


GOOD = (
    [(f"good {alg}", token(header(alg), sign=alg)) for alg in SIGNERS]
    + [
        ("good, one of several audiences", token(body=claims(aud=["other", "shop"]))),
        ("good, without a kid", token(header(kid=LEFT_OUT))),
        ("good, without a typ", token(header(typ=LEFT_OUT))),
        ("good, typ in lower case", token(header(typ="jwt"))),
        ("good, a token of access", token(header(typ="application/at+jwt"))),
        ("good, a second before its end", token(body=claims(exp=NOW + 1))),
        ("good, ends within this second", token(body=claims(exp=NOW + 0.5))),
        ("good, valid from now on", token(body=claims(nbf=NOW))),
        ("good, without iat and nbf", token(body=claims(iat=LEFT_OUT, nbf=LEFT_OUT))),
        ("good, about nobody", token(body=claims(sub=LEFT_OUT))),
        ("good, names of keys elsewhere are not read", token(header(jku="https://evil.example/keys", x5u="https://evil.example/x", jwk=NEXT[0]))),
        ("good, claims that nobody asks for", token(body=claims(roles=["a", {"b": 1}], ok=True))),
        ("good, blanks inside of the JSON", token(body=json.dumps(claims(), indent=2))),
    ]
)

BAD = [
    # Not signed, or not as it has to be.
    ("alg none", token(header("none"), sign=of(b"")), "signature"),
    ("alg None", token(header("None"), sign=of(b"")), "signature"),
    ("alg NONE", token(header("NONE"), sign=of(b"")), "signature"),
    ("alg nOnE", token(header("nOnE"), sign=of(b"")), "signature"),
    ("alg none with a good signature", token(header("none")), "signature"),
    ("alg none without a kid", token(header("none", kid=LEFT_OUT), sign=of(b"")), "signature"),
    ("alg empty", token(header("")), "signature"),
    ("alg missing", token(header(LEFT_OUT)), "malformed"),
    ("alg null", token(header(None)), "malformed"),
    ("alg a list", token(header() | {"alg": ["ES256"]}), "malformed"),
    ("alg in lower case", token(header() | {"alg": "es256"}), "signature"),
    ("alg with a blank", token(header() | {"alg": "ES256 "}), "signature"),
    ("alg with a NUL", token(header() | {"alg": "ES256\0"}), "signature"),
    ("HS256 with the public key in PEM", token(header() | {"alg": "HS256"}, sign=mac(PEM)), "signature"),
    ("HS256 with the RSA key in PEM", token({"alg": "HS256", "kid": "rsa"}, sign=mac(RSA_PEM)), "signature"),
    ("HS256 with the key in JSON", token(header() | {"alg": "HS256"}, sign=mac(text(KEYS[0]).encode())), "signature"),
    ("HS256 with its coordinate", token(header() | {"alg": "HS256"}, sign=mac(KEYS[0]["x"].encode())), "signature"),
    ("HS256 with nothing", token(header() | {"alg": "HS256"}, sign=mac(b"")), "signature"),
    ("HS384", token(header() | {"alg": "HS384"}, sign=mac(PEM, hashlib.sha384)), "signature"),
    ("HS512", token(header() | {"alg": "HS512"}, sign=mac(PEM, hashlib.sha512)), "signature"),
    ("ES256K", token(header() | {"alg": "ES256K"}), "signature"),
    ("ES512", token(header() | {"alg": "ES512"}), "signature"),
    # Another key, or another kind of key than the algorithm is for.
    ("RS256 by an EC key", token(header("RS256", kid="p256")), "keys"),
    ("ES256 by an RSA key", token(header(kid="rsa"), sign="RS256"), "keys"),
    ("ES384 by a P-256 key", token(header("ES384", kid="p256")), "keys"),
    ("EdDSA by a P-256 key", token(header("EdDSA", kid="p256")), "keys"),
    ("EdDSA that is signed as ES256", token(header("EdDSA")), "signature"),
    ("PS256 that is signed as RS256", token(header("PS256"), sign="RS256"), "signature"),
    ("RS256 that is signed as PS256", token(header("RS256"), sign="PS256"), "signature"),
    ("RS512 that is signed as RS256", token(header("RS512"), sign="RS256"), "signature"),
    ("signed by somebody else", token(sign=lambda d: raw(P256_OTHER.sign(d, ec.ECDSA(hashes.SHA256())), 32)), "signature"),
    ("signed by a key that it brings", token(header(jwk=curve(P256_OTHER, "P-256", 32)), sign=lambda d: raw(P256_OTHER.sign(d, ec.ECDSA(hashes.SHA256())), 32)), "signature"),
    ("signed by the key to come", token(header(kid="next"), sign=lambda d: raw(P256_NEXT.sign(d, ec.ECDSA(hashes.SHA256())), 32)), "keys"),
    # Names of keys.
    ("kid unknown", token(header(kid="nobody")), "keys"),
    ("kid empty", token(header(kid="")), "keys"),
    ("kid a path", token(header(kid="../../../../dev/null"), sign=mac(b"")), "keys"),
    ("kid a file", token(header(kid="file:///etc/hostname")), "keys"),
    ("kid a URL", token(header(kid="https://evil.example/key")), "keys"),
    ("kid SQL", token(header(kid="x' UNION SELECT 'key")), "keys"),
    ("kid a command", token(header(kid="|/usr/bin/id")), "keys"),
    ("kid with a NUL", token(header(kid="p256\0")), "keys"),
    ("kid in another case", token(header(kid="P256")), "keys"),
    ("kid a number", token(header(kid=1)), "malformed"),
    ("kid null", token(header(kid=None)), "malformed"),
    ("kid a list", token(header(kid=["p256"])), "malformed"),
    # Signatures.
    ("signature empty", parts(2, lambda data: ""), "signature"),
    ("signature cut", token(sign=lambda d: SIGNERS["ES256"](d)[:-1]), "signature"),
    ("signature longer", token(sign=lambda d: SIGNERS["ES256"](d) + b"\0"), "signature"),
    ("signature changed", parts(2, flipped), "signature"),
    ("signature in DER", token(sign=lambda d: P256.sign(d, ec.ECDSA(hashes.SHA256()))), "signature"),
    ("signature r = s = 0", token(sign=number_pair(0, 0)), "signature"),
    ("signature r = 0", token(sign=number_pair(0, 1)), "signature"),
    ("signature s = 0", token(sign=number_pair(1, 0)), "signature"),
    ("signature r = s = n", token(sign=number_pair(N, N)), "signature"),
    ("signature r = s = 1", token(sign=number_pair(1, 1)), "signature"),
    ("signature of other claims", ".".join([*token(body=claims(sub="admin")).split(".")[:2], token().split(".")[2]]), "signature"),
    ("RSA signature of zeros", token(header("RS256"), sign=of(bytes(256))), "signature"),
    ("RSA signature cut", token(header("RS256"), sign=lambda d: SIGNERS["RS256"](d)[:-1]), "signature"),
    ("Ed25519 signature of zeros", token(header("EdDSA"), sign=of(bytes(64))), "signature"),
    ("claims changed", parts(1, lambda data: b64(text(claims(sub="admin")))), "signature"),
    ("header changed", parts(0, lambda data: b64(text(header(typ="at+jwt")))), "signature"),
    # Encoding.
    ("padding", parts(2, lambda data: data + "=="), "malformed"),
    ("padding in the header", parts(0, lambda data: data + "="), "malformed"),
    ("the other alphabet", parts(2, lambda data: "+/" + data[2:]), "malformed"),
    ("loose bits at the end", token(header("EdDSA"), sign="EdDSA")[:-1] + "_", "malformed"),
    ("a blank before", " " + token(), "malformed"),
    ("a blank behind", token() + " ", "malformed"),
    ("a blank inside", token().replace(".", " .", 1), "malformed"),
    ("a line break", token() + "\n", "malformed"),
    ("a NUL behind", token() + "\0", "malformed"),
    ("quoted", f'"{token()}"', "malformed"),
    ("a letter beyond ASCII", token() + "é", "malformed"),
    ("a dot behind", token() + ".", "malformed"),
    ("a dot before", "." + token(), "malformed"),
    ("five parts", token() + ".AA.AA", "malformed"),
    ("two parts", token().rsplit(".", 1)[0], "malformed"),
    ("one part", token().split(".", maxsplit=1)[0], "malformed"),
    ("dots alone", "..", "malformed"),
    ("a word", "hello", "malformed"),
    ("oversize", token(body=claims(pad="x" * 8192)), "malformed"),
    ("a token in JSON", text({"payload": "", "signatures": []}), "malformed"),
    # Headers.
    ("header no JSON", token("alg=ES256"), "malformed"),
    ("header a list", token("[]"), "malformed"),
    ("header with a mark of the byte order", token("\ufeff" + text(header())), "malformed"),
    ("header twice", token(text(header()) * 2), "malformed"),
    ("alg twice, the last good", token('{"alg":"none","alg":"ES256","kid":"p256"}'), "malformed"),
    ("alg twice, the first good", token('{"alg":"ES256","alg":"none","kid":"p256"}'), "malformed"),
    ("alg twice, once escaped", token('{"alg":"ES256","\\u0061lg":"none","kid":"p256"}'), "malformed"),
    ("kid twice", token('{"alg":"ES256","kid":"p384","kid":"p256"}'), "malformed"),
    ("crit", token(header(crit=["exp"])), "malformed"),
    ("crit empty", token(header(crit=[])), "malformed"),
    ("crit null", token(header(crit=None)), "malformed"),
    ("crit b64", token(header(crit=["b64"], b64=False)), "malformed"),
    ("typ of another kind", token(header(typ="dpop+jwt")), "malformed"),
    ("typ a number", token(header(typ=1)), "malformed"),
    # Claims of a token with a good signature.
    ("claims no JSON", token(body="hello"), "malformed"),
    ("claims a list", token(body="[]"), "malformed"),
    ("claims a token", token(header(cty="JWT"), token()), "malformed"),
    ("exp twice", token(body=text(claims())[:-1] + f',"exp":{FAR}}}'), "malformed"),
    ("sub twice", token(body='{"sub":"admin",' + text(claims())[1:]), "malformed"),
    ("a claim twice inside of another", token(body=text(claims())[:-1] + ',"a":{"b":1,"b":2}}'), "malformed"),
    ("claims nested without end", token(body='{"a":' + "[" * 2000 + "]" * 2000 + "}"), "malformed"),
    ("exp missing", token(body=claims(exp=LEFT_OUT)), "claims"),
    ("exp null", token(body=claims(exp=None)), "claims"),
    ("exp a text", token(body=claims(exp=str(NOW + 600))), "claims"),
    ("exp negative", token(body=claims(exp=-1)), "claims"),
    ("exp without end", token(body=text(claims()).replace(str(NOW + 600), "1e400")), "malformed"),
    ("exp beyond all time", token(body=claims(exp=1e300)), "claims"),
    ("exp zero", token(body=claims(exp=0)), "expired"),
    ("expired now", token(body=claims(exp=NOW)), "expired"),
    ("expired by a second", token(body=claims(exp=NOW - 1)), "expired"),
    ("expired by a year", token(body=claims(exp=NOW - 31_536_000)), "expired"),
    ("nbf in a second", token(body=claims(nbf=NOW + 1)), "claims"),
    ("nbf a text", token(body=claims(nbf="now")), "claims"),
    ("iat in an hour", token(body=claims(iat=NOW + 3600)), "claims"),
    ("iat a text", token(body=claims(iat="now")), "claims"),
    ("issuer missing", token(body=claims(iss=LEFT_OUT)), "claims"),
    ("issuer another", token(body=claims(iss="https://evil.example")), "claims"),
    ("issuer with a slash", token(body=claims(iss="https://id.example/")), "claims"),
    ("issuer in another case", token(body=claims(iss="https://ID.example")), "claims"),
    ("issuer a list", token(body=claims(iss=["https://id.example"])), "claims"),
    ("audience missing", token(body=claims(aud=LEFT_OUT)), "claims"),
    ("audience another", token(body=claims(aud="shopping")), "claims"),
    ("audience a part", token(body=claims(aud="sho")), "claims"),
    ("audience in another case", token(body=claims(aud="Shop")), "claims"),
    ("audience an empty list", token(body=claims(aud=[])), "claims"),
    ("audience a list of others", token(body=claims(aud=["a", "b"])), "claims"),
    ("audience an object", token(body=claims(aud={"shop": 1})), "claims"),
    ("audience a list with a number", token(body=claims(aud=["shop", 1])), "claims"),
    ("audience a list in a list", token(body=claims(aud=[["shop"]])), "claims"),
    ("sub a number", token(body=claims(sub=7)), "claims"),
    ("sub a list", token(body=claims(sub=["alice"])), "claims"),
]

FOLDER.mkdir(parents=True, exist_ok=True)
(FOLDER / "keys.json").write_text(json.dumps({"keys": KEYS}, indent=1) + "\n")
(FOLDER / "next_keys.json").write_text(json.dumps({"keys": NEXT}, indent=1) + "\n")
table = [{"name": name, "expect": "good", "token": made} for name, made in GOOD]
table += [{"name": name, "expect": expect, "token": made} for name, made, expect in BAD]
(FOLDER / "tokens.json").write_text(json.dumps({"now": NOW, "tokens": table}, indent=1) + "\n")
# For tests whose clock is the wall's: good for a thousand years, or long over.
LASTING = {
    "good": token(body=claims(exp=FAR, nbf=0, iat=0, admin=True, level=7, roles=["a"], odd="a\nb")),
    "next": token(header(kid="next"), claims(exp=FAR, nbf=0, iat=0), lambda d: raw(P256_NEXT.sign(d, ec.ECDSA(hashes.SHA256())), 32)),
    "expired": token(body=claims(exp=1_000_000_000, nbf=0, iat=0)),
    "elsewhere": token(body=claims(exp=FAR, nbf=0, iat=0, aud="elsewhere")),
}
(FOLDER / "lasting.json").write_text(json.dumps(LASTING, indent=1) + "\n")
print(f"{len(GOOD)} good tokens, {len(BAD)} others")
