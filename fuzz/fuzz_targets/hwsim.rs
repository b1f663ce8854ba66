#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| airloom_fuzz::hwsim::run(data));
