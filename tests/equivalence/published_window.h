// A directory that transformers wrote (tests/oracle/hf) with what float64 of
// PyTorch says of the one window that its ids are.
#ifndef TROUPE_TESTS_EQUIVALENCE_PUBLISHED_WINDOW_H_
#define TROUPE_TESTS_EQUIVALENCE_PUBLISHED_WINDOW_H_

#include <string>

#include "proto/job.pb.h"

namespace troupe {

struct PublishedWindow {
  // Evaluates it in one step over two replicas, of which one has no window.
  JobSpec job;
  int targets = 0;  // tokens that count
  double loss = 0;  // their mean
};

// CHECKs that the directory of this name can be read.
PublishedWindow PublishedWindowOf(const std::string& name);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_PUBLISHED_WINDOW_H_
