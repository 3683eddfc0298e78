#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>

#include "clients/cli/commands/commands.h"
#include "clients/cli/interrupt.h"
#include "clients/cli/progress.h"
#include "clients/cli/view/format.h"
#include "clients/hugging_face/import_model.h"
#include "proto/base/shell_word.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

class Import final : public Command {
 public:
  void Declare(Flags& flags) override {
    flags.Required("DIR", from_,
                   "The Hugging Face directory: config.json and safetensors");
    flags.Text("--to!", to_,
               {.value = "DIR",
                .text = "Where the checkpoint goes, as DIR/step-00000000"});
  }

  absl::Status Run(Console& console) override {
    Interrupt interrupt;
    absl::StatusOr<ImportedModel> imported = Convert(interrupt, console);
    if (!imported.ok()) return imported.status();
    const ModelSpec& model = imported->model;
    // The job's own folder is another than the one in which this runs.
    std::error_code error;
    const std::filesystem::path from =
        std::filesystem::absolute(from_, error).lexically_normal();
    const std::filesystem::path made =
        std::filesystem::absolute(imported->checkpoint, error)
            .lexically_normal();
    console.out << imported->checkpoint << ": " << model.architecture() << ", "
                << CountText(static_cast<double>(imported->parameters))
                << " parameters, " << BytesText(imported->bytes) << "\n";
    if (!imported->left_out.empty()) {
      console.out << "left out: " << imported->left_out.size()
                  << " tensors of layers for multi-token prediction ("
                  << imported->left_out.front() << ", ...)\n";
    }
    console.out << "train on with, in the job:  model: {hf: "
                << YamlWord(from.string())
                << "}  checkpoint: {resume: " << YamlWord(made.string())
                << "}\n"
                << "or let it write:  troupe generate --checkpoint "
                << ShellWord(imported->checkpoint) << "\n";
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ImportedModel> Convert(Interrupt& interrupt,
                                        Console& console) {
    Progress progress(console, interrupt, "importing: ");
    return ImportModel({.from = from_,
                        .to = to_,
                        .progress = [&](int64_t done, int64_t total) {
                          return progress.Show(done, total);
                        }});
  }

  std::string from_;
  std::string to_;
};

}  // namespace

std::unique_ptr<Command> MakeImport() { return std::make_unique<Import>(); }

}  // namespace troupe
