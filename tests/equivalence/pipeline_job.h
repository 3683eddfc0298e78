// The small job of the tests, deep enough for pipelines: six blocks, eight
// units.
#ifndef TROUPE_TESTS_EQUIVALENCE_PIPELINE_JOB_H_
#define TROUPE_TESTS_EQUIVALENCE_PIPELINE_JOB_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct PipelineModel {
  std::string architecture = "gpt2";
  bool tied = true;
  double dropout = 0;
};

// 20 steps of 8 sequences, micro-batches of one.
JobSpec PipelineJob(const PipelineModel& model);

// How the job is cut.
struct PipelineCut {
  std::string schedule;
  int pipeline = 2;
  int data = 1;
  int virtual_stages = 0;   // 0: as the schedule says
  std::vector<int> stages;  // units of each; empty: balanced
  int ranks() const { return pipeline * data; }
};
JobSpec CutJob(const JobSpec& job, const PipelineCut& cut);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_PIPELINE_JOB_H_
