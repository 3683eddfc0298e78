#include "tests/equivalence/pipeline_job.h"

#include "tests/equivalence/small_job.h"

namespace troupe {

JobSpec PipelineJob(const PipelineModel& model) {
  JobSpec job = model.architecture == "gpt2" ? SmallJob() : SmallLlamaJob();
  job.mutable_model()->set_num_hidden_layers(6);
  job.mutable_model()->set_tie_word_embeddings(model.tied);
  job.mutable_training()->set_dropout(model.dropout);
  job.mutable_training()->set_micro_batch_size(1);
  // A larger one makes so deep a model's first steps leap, and rounding with
  // them.
  job.mutable_optimizer()->set_lr(3e-3);
  return job;
}

JobSpec CutJob(const JobSpec& job, const PipelineCut& cut) {
  JobSpec result = job;
  ParallelismSpec& parallelism = *result.mutable_parallelism();
  parallelism.set_pipeline(cut.pipeline);
  parallelism.set_data(cut.data);
  parallelism.set_pipeline_schedule(cut.schedule);
  if (cut.virtual_stages > 0) {
    parallelism.set_virtual_stages(cut.virtual_stages);
  }
  parallelism.mutable_stages()->Assign(cut.stages.begin(), cut.stages.end());
  // Buckets of a few kilobytes, so that there are several.
  parallelism.set_bucket_megabytes(0.02);
  return result;
}

}  // namespace troupe
