#include <ostream>
#include <string>

#include "clients/cli/cluster_flags.h"
#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/newest_checkpoint.h"
#include "clients/cli/progress.h"
#include "clients/cli/root_flags.h"
#include "clients/cli/view/format.h"
#include "clients/hugging_face/export_model.h"
#include "proto/base/status.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

class Export final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Optional("JOB", job_,
                   "The job whose newest checkpoint is exported (number, name "
                   "or latest)");
    flags.Text("--checkpoint", checkpoint_,
               {.value = "DIR", .text = "Or the checkpoint itself"});
    flags.Text("--to!", to_,
               {.value = "DIR", .text = "The Hugging Face directory to make"});
    flags.Switch("--merged", merged_,
                 "Of a job with training.lora: the model, with its adapters "
                 "added to the weights [the adapters alone, for PEFT]");
    flags.Switch("--ema", averages_,
                 "Of a job with optimizer.ema: the average of the weights "
                 "[the weights]");
    flags.Choice("--dtype", dtype_, {"f32", "bf16"},
                 "Of the weights in the files [f32]");
    flags.Integer("--file-megabytes", file_megabytes_, {1, 1 << 20},
                  {.value = "N", .text = "Largest file of weights [5120]"});
    roots_.Declare(flags);
    cluster_.Declare(flags);
  }

  absl::Status Run(Console& console) override {
    if (job_.empty() == checkpoint_.empty()) {
      return absl::InvalidArgumentError(
          "usage: give either a JOB or --checkpoint DIR");
    }
    Interrupt interrupt;
    if (checkpoint_.empty()) {
      ASSIGN_OR_RETURN(checkpoint_, NewestCheckpoint(console));
    }
    ASSIGN_OR_RETURN(const auto roots, roots_.Install());
    RETURN_IF_ERROR(CheckReadableHere("--checkpoint", checkpoint_));
    ASSIGN_OR_RETURN(const ExportedModel exported, Convert(interrupt, console));
    console.out << to_ << ": step " << GroupedText(exported.step) << ", "
                << CountText(static_cast<double>(exported.parameters))
                << (exported.adapters ? " parameters of adapters, "
                                      : " parameters, ")
                << BytesText(exported.bytes) << " of " << dtype_ << " in "
                << exported.files
                << (exported.files == 1 ? " file\n" : " files\n");
    if (exported.adapters && !exported.names_base) {
      console.out << "adapter_config.json names no base model, as the job did "
                     "not surely begin with a model.hf; --merged has both\n";
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::string> NewestCheckpoint(const Console& console) {
    ASSIGN_OR_RETURN(const auto client, cluster_.Connect(console));
    return NewestCheckpointOf(*client, job_);
  }

  absl::StatusOr<ExportedModel> Convert(Interrupt& interrupt,
                                        Console& console) {
    Progress progress(console, interrupt, "exporting: ");
    return ExportModel(
        {.checkpoint = checkpoint_,
         .to = to_,
         .dtype = dtype_ == "bf16" ? StoredDType::kBF16 : StoredDType::kF32,
         .file_bytes_max = file_megabytes_ << 20,
         .merged = merged_,
         .averages = averages_,
         .progress = [&](int64_t done, int64_t total) {
           return progress.Show(done, total);
         }});
  }

  std::string job_;
  std::string checkpoint_;
  std::string to_;
  bool merged_ = false;
  bool averages_ = false;
  std::string dtype_ = "f32";
  int64_t file_megabytes_ = 5120;
  RootFlags roots_;
  ClusterFlags cluster_;
};

}  // namespace

std::unique_ptr<Command> MakeExport() { return std::make_unique<Export>(); }

}  // namespace troupe
