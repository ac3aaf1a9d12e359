//! Why a stream or a connection ends (RFC 9113 §7).

use std::fmt;

/// An error code. Others may come than those that have names; they mean INTERNAL_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Nothing went wrong.
    pub const NO_ERROR: ErrorCode = ErrorCode(0);
    /// The peer breaks the protocol.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    /// We can't go on.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(2);
    /// More was sent than the window allows.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    /// SETTINGS were not answered in time.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(4);
    /// A frame on a stream on which its sender had ended.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    /// Nothing was done about the request; it may be sent again.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    /// The stream is of no more use.
    pub const CANCEL: ErrorCode = ErrorCode(8);
    /// The compression of heads is out of step.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    /// The peer makes too much work.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
    /// It has to be asked with HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(13);

    /// The names, by number.
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ErrorCode::NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_by_name() {
        assert_eq!(ErrorCode::CANCEL.to_string(), "CANCEL");
        assert_eq!(ErrorCode::HTTP_1_1_REQUIRED.to_string(), "HTTP_1_1_REQUIRED");
        assert_eq!(ErrorCode(0xff).to_string(), "0xff");
    }
}
