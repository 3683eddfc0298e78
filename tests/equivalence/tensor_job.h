// The small job of the tests with sizes that are cut inside units: over 2, 3, 4
// and 8 ranks.
#ifndef TROUPE_TESTS_EQUIVALENCE_TENSOR_JOB_H_
#define TROUPE_TESTS_EQUIVALENCE_TENSOR_JOB_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct TensorModel {
  std::string architecture = "gpt2";
  bool tied = true;
  double dropout = 0;
  int key_value_heads = 2;  // shared by neighbours where ranks are more
  int positions = 24;       // of a sequence; 48: two pieces for each of 8
  int micro_batch = 2;      // sequences
};

// Heads, intermediate columns and positions that 2, 3, 4 and 8 divide; a
// vocabulary that none of them does.
JobSpec TensorJob(const TensorModel& model);

// How the job is cut.
struct JobCut {
  int tensor = 1;
  bool sequence = false;
  std::string tensor_method = "1d";
  std::string schedule = "1f1b";
  int pipeline = 1;
  int data = 1;
  int zero = 0;
  int zero_size = 0;    // 0: all of data
  std::vector<int> zero_weights = {};  // none: even slices
  bool reshard = true;  // zero 3
  // Likewise: what whole units may take as gathers run ahead; -1: the planner
  // says.
  int64_t unsharded_bytes = -1;
  int context = 1;
  std::string context_method = "ulysses";
  int ulysses_size = 0;  // usp
  int expert = 1;
  int ranks() const { return tensor * context * pipeline * data; }
};
JobSpec CutJob(const JobSpec& job, const JobCut& cut);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_TENSOR_JOB_H_
