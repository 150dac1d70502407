//! The driver: starts the controller, and runs each lane for the profiles that are due.

pub mod health;
pub mod lane;
pub mod run;
