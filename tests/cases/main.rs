//! Cases: what other timer libraries test for, or had to mend, as tests of this one. Each test has
//! the name of its case (`tokio_09`: the ninth case learned from tokio's suite) and says in a line
//! what it is about. Where peers differ the contract decides, and the test says so with the rule's
//! number. `_real`, `_threads` and the like are second looks at the same case; `_full` is the case
//! at the size that the peer runs it, too long for every day.
//!
//! Everything goes through the C ABI, as a C program would. Most cases run on the manual clock,
//! where instants are exact; on the real one bounds leave the machine room.

#[path = "../support/mod.rs"]
mod support;

mod kit;

mod a_firing;
mod b_zero;
mod c_huge;
mod d_levels;
mod e_jumps;
mod f_order;
mod g_cancel;
mod gaps;
mod gaps_races;
mod h_reset;
mod i_inside;
mod j_driven;
mod k_periodic;
mod l_handles;
mod m_capacity;
mod n_stop;
mod o_foreign;
mod o_races;
mod p_clock;
mod q_slow;
mod r_config;
mod s_fuzz;

// CAFF-08, CAFF-09, AKKA-01 and NODE-06, where a handler fails, are in tests/rust_api/panics.rs: a C
// callback cannot fail.
//
// Cases that have no test, and why:
//
// case        about                                            reason
// ---------   ----------------------------------------------   -----------------------------------
// AGRONA-01   sizes of the wheel that are no power of two      the geometry is not configurable
// AGRONA-14   visiting all live timers                         no call that lists timers
// WAHERN-11   iterators over pending, due, all                 no call that lists timers
// FOLLY-11    a service that is counted by references          a C service has one owner
