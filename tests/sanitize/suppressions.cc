// What thread sanitizer reports and is no race, where no call says so that
// synchronization.cc could stand before. Part of every test with --config=tsan,
// and of nothing else.

extern "C" const char* __tsan_default_suppressions();

// The sanitizer asks for it when a program starts. Each line names a
// function or a library; a report with it on either stack is left out.
const char* __tsan_default_suppressions() {
  return
      // A buffer of Gloo waits in its destructor until Gloo's thread lets go of
      // it, by a count of references inside the library, which was not built
      // with the sanitizer. So it seems as if that thread still received into
      // the buffer's memory, or sent from it, or said that it is done, when
      // that is freed.
      "race:gloo::transport::tcp::Pair::read\n"
      "race:gloo::transport::tcp::Pair::write\n"
      "race:gloo::transport::tcp::UnboundBuffer::handle\n"
      // The first thread to ask makes a table of all messages; the others wait
      // for that by a guard inside the library.
      "race:base_internal::StrError\n"
      // What absl's mutexes know of their order is behind a lock that no mutex
      // is.
      "race:synchronization_internal::GraphCycles\n"
      // oneDNN keeps what it compiled, for all threads, behind locks and counts
      // of its own.
      "race:libdnnl.so\n";
}
