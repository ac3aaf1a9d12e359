//! Which form a client wants.

/// One of the two forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextForm {
    /// Prometheus 0.0.4.
    #[default]
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl TextForm {
    /// What it is called in Content-Type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            TextForm::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            TextForm::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The one that `accept`, the value of such a field, asks for. Who does not know of OpenMetrics, or likes text better, gets
    /// what everybody reads.
    #[must_use]
    pub fn wanted(accept: &str) -> TextForm {
        let (mut open, mut plain) = (0, 0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
            let name = parts.next().unwrap_or_default();
            let (mut weight, mut is_known) = (1_000, true);
            for part in parts {
                match part.split_once('=') {
                    Some(("q", value)) => weight = thousandths(value),
                    Some(("version", value)) => is_known = matches!(value, "1.0.0" | "0.0.1"),
                    _ => {}
                }
            }
            match name.as_str() {
                "application/openmetrics-text" if is_known => open = open.max(weight),
                "text/plain" => plain = plain.max(weight),
                _ => {}
            }
        }
        if open > 0 && open >= plain { TextForm::OpenMetrics } else { TextForm::Prometheus }
    }
}

/// A weight (RFC 9110 §12.4.2) in thousandths; one that is none counts as nothing.
fn thousandths(text: &str) -> u32 {
    let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "1" => 1_000,
        "0" if digits => format!("{rest:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scraper_gets_what_it_likes_best() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                          application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, form) in [
            (prometheus, TextForm::OpenMetrics),
            ("application/openmetrics-text", TextForm::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=1.0.0", TextForm::OpenMetrics),
            ("text/plain;q=0.5, application/openmetrics-text;q=0.4", TextForm::Prometheus),
            ("application/openmetrics-text;version=2.0.0", TextForm::Prometheus),
            ("application/openmetrics-text;q=0", TextForm::Prometheus),
            ("application/openmetrics-text;q=x", TextForm::Prometheus),
            ("*/*", TextForm::Prometheus),
            ("", TextForm::Prometheus),
        ] {
            assert_eq!(TextForm::wanted(accept), form, "{accept}");
        }
        assert_eq!(["1", "1.0", "0.25", "0", "0.1234", "2"].map(thousandths), [1_000, 1_000, 250, 0, 0, 0]);
    }
}
