//! What a question to the API and its answer are made of: who asks, what is asked, and in which words it is answered or
//! refused. Nothing here knows what can be asked.

pub mod answers;
pub mod caller;
pub mod json_fields;
pub mod percent;
pub mod pieces;
pub mod problem_document;
pub mod question;
