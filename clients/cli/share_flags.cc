#include "clients/cli/share_flags.h"

#include <filesystem>
#include <system_error>

namespace troupe {

void ShareFlags::Declare(Flags& flags) {
  flags.Integer(
      "--threads", threads_, {0, 1024},
      {.value = "T", .text = "Threads of each worker [cores / N, at least 1]"});
  flags.Text("--device-memory", said_.device_memory,
             {.value = "BYTES",
              .text = "Memory of each worker, as in 2GiB [an even share]"});
  flags.Text(
      "--host-memory", said_.host_memory,
      {.value = "BYTES", .text = "Of each worker's host tier [an even share]"});
  flags.Text("--nvme", said_.nvme,
             {.value = "DIR",
              .text = "A directory on a disk, for the nvme tier of all"});
  flags.Text(
      "--nvme-size", said_.nvme_size,
      {.value = "BYTES", .text = "Of it, each worker's part, as in 200GiB"});
}

absl::StatusOr<WorkerShare> ShareFlags::Share() const {
  if (said_.nvme.empty() != said_.nvme_size.empty()) {
    return absl::InvalidArgumentError(
        "usage: --nvme DIR and --nvme-size BYTES go together");
  }
  WorkerShare share = said_;
  share.threads = static_cast<int>(threads_);
  std::error_code error;
  if (!share.nvme.empty()) {
    share.nvme = std::filesystem::absolute(share.nvme, error).string();
  }
  return share;
}

}  // namespace troupe
