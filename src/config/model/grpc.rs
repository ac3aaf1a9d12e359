//! How calls of gRPC end (<https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>).

macro_rules! statuses {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $http:literal;)*) => {
        /// How a call ended, by the backend's word or by ours.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum GrpcStatus {
            $($(#[$doc])* $variant = $number,)*
        }

        impl GrpcStatus {
            /// Every status, in the order of its number.
            pub const ALL: &'static [GrpcStatus] = &[$(GrpcStatus::$variant,)*];

            /// The name in configs, logs and metrics: the official one in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(GrpcStatus::$variant => $name,)* }
            }

            /// The HTTP status that means the same to breaker and outlier detection. Those of a call that its client gave too little time,
            /// or has given up, are no fault of a backend.
            #[must_use]
            pub const fn http(self) -> u16 {
                match self { $(GrpcStatus::$variant => $http,)* }
            }
        }
    };
}

statuses! {
    /// It did what it was to do.
    Ok = 0, "ok", 200;
    /// Somebody has given it up.
    Cancelled = 1, "cancelled", 499;
    /// Nobody has said more.
    Unknown = 2, "unknown", 500;
    /// The request makes no sense, whatever the state of things.
    InvalidArgument = 3, "invalid_argument", 400;
    /// Its time was over.
    DeadlineExceeded = 4, "deadline_exceeded", 408;
    /// What it is about is not there.
    NotFound = 5, "not_found", 404;
    /// What it was to make is there.
    AlreadyExists = 6, "already_exists", 409;
    /// Whoever asks may not have it.
    PermissionDenied = 7, "permission_denied", 403;
    /// Something ran out.
    ResourceExhausted = 8, "resource_exhausted", 429;
    /// The state of things does not allow it.
    FailedPrecondition = 9, "failed_precondition", 400;
    /// Something else came in between.
    Aborted = 10, "aborted", 409;
    /// Beyond what there is.
    OutOfRange = 11, "out_of_range", 400;
    /// There is no such method, or service: whoever asks for one is mistaken.
    Unimplemented = 12, "unimplemented", 404;
    /// Something is broken.
    Internal = 13, "internal", 500;
    /// It may be had a little later.
    Unavailable = 14, "unavailable", 503;
    /// Data was lost for good.
    DataLoss = 15, "data_loss", 500;
    /// It is not known who asks.
    Unauthenticated = 16, "unauthenticated", 401;
}

/// A set of statuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrpcStatuses(u32);

impl GrpcStatuses {
    /// Those for which `holds` is true.
    #[must_use]
    pub fn of(holds: impl Fn(GrpcStatus) -> bool) -> GrpcStatuses {
        let bits = GrpcStatus::ALL.iter().filter(|status| holds(**status)).map(|status| 1 << *status as u8);
        GrpcStatuses(bits.sum())
    }

    /// Whether it is among them.
    #[must_use]
    pub const fn has(self, status: GrpcStatus) -> bool {
        self.0 >> status as u8 & 1 == 1
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// They, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = GrpcStatus> {
        GrpcStatus::ALL.iter().copied().filter(move |status| self.has(*status))
    }
}
