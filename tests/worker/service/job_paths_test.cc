#include "worker/service/job_paths.h"

#include <google/protobuf/descriptor.h>

#include <functional>
#include <set>
#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Texts of a job that name no file.
const std::set<std::string>& Words() {
  static const auto* const words = new std::set<std::string>{
      "name", "model.architecture",
      // The client reads it; the text travels.
      "model.graph", "model.graph_text", "model.experts.balance",
      // The client reads the file, as of a graph.
      "model.experts.load", "model.experts.load_file", "model.experts.routing",
      "model.hidden_act", "model.rope_scaling.type", "training.precision",
      "training.gradient_precision", "training.freeze", "training.lora.modules",
      "optimizer.name", "optimizer.groups.match", "optimizer.groups.name",
      "objective", "communication.all_reduce", "communication.reduce_scatter",
      "communication.all_gather", "communication.broadcast",
      "communication.all_to_all", "data.sample.prompt", "servers.mode",
      "servers.on", "parallelism.mode", "lr_scheduler.name",
      "parallelism.pipeline_schedule", "parallelism.tensor_method",
      "parallelism.context_method", "parallelism.micro_batch_split",
      "memory.recompute.mode", "recovery.every", "memory.optimizer",
      "memory.parameters", "memory.gradients", "memory.activations",
      "memory.chunk_megabytes", "memory.mode", "parallelism.zero_split",
      "islands.compress", "parallelism.strategies.units",
      "parallelism.strategies.context_method",
      "parallelism.strategies.tensor_method"};
  return *words;
}

// Calls `look` with each text field of a job, after it was set to `text`.
void EachText(const std::string& text, Message& job, Message& at,
              const std::string& path,
              const std::function<void(const std::string& field)>& look) {
  const Descriptor& type = *at.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const std::string name = path + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const Reflection& set = *at.GetReflection();
      if (field->is_repeated()) {
        EachText(text, job, *set.AddMessage(&at, field), name + ".", look);
        set.ClearField(&at, field);
      } else {
        EachText(text, job, *set.MutableMessage(&at, field), name + ".", look);
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      if (field->is_repeated()) {
        at.GetReflection()->AddString(&at, field, text);
      } else {
        at.GetReflection()->SetString(&at, field, text);
      }
      look(name);
      at.GetReflection()->ClearField(&at, field);
    }
  }
}

// A path that somebody adds to the job file, and forgets here, is found: it is
// neither held to the roots nor a word.
TEST(JobPaths, EveryTextOfAJobIsHeldToTheRootsOrAWord) {
  const auto roots = Roots::Install({"data=/proc"}).value();
  Assignment assignment;
  JobSpec& job = *assignment.mutable_plan()->mutable_job();
  int paths = 0;
  EachText("/etc/passwd", job, job, "", [&](const std::string& field) {
    const absl::Status status = CheckJobPaths(assignment);
    if (Words().count(field) > 0) {
      EXPECT_TRUE(status.ok()) << field;
      return;
    }
    ++paths;
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << field;
    // "data.sources[0].tokens: ..."
    const std::string said =
        absl::StrReplaceAll(status.message(), {{"[0]", ""}});
    EXPECT_EQ(said.find(field + ": /etc/passwd"), 0u) << status;
  });
  EXPECT_EQ(paths, 9);
  EachText("data:self", job, job, "", [&](const std::string& field) {
    EXPECT_TRUE(CheckJobPaths(assignment).ok()) << field;
  });
  assignment.set_resume("/etc");
  EXPECT_TRUE(absl::IsPermissionDenied(CheckJobPaths(assignment)));
  for (const char* const word : {"latest", "auto"}) {
    assignment.set_resume(word);
    EXPECT_TRUE(CheckJobPaths(assignment).ok()) << word;
  }
}

TEST(JobPaths, WithoutRootsAnyWillDo) {
  Assignment assignment;
  assignment.mutable_plan()->mutable_job()->mutable_data()->set_tokens("/t");
  assignment.set_resume("/ckpt");
  EXPECT_TRUE(CheckJobPaths(assignment).ok());
}

}  // namespace
}  // namespace troupe
