// --threads, --device-memory, --host-memory, --nvme and --nvme-size: what each
// worker on this machine gets.
#ifndef TROUPE_CLIENTS_CLI_SHARE_FLAGS_H_
#define TROUPE_CLIENTS_CLI_SHARE_FLAGS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "clients/cli/flags.h"
#include "clients/cli/local/machine_share.h"

namespace troupe {

class ShareFlags {
 public:
  void Declare(Flags& flags);

  bool is_given() const { return threads_ > 0 || said_ != WorkerShare{}; }
  // What was said, the directory as an absolute path. InvalidArgument where one
  // of --nvme and --nvme-size is missing.
  absl::StatusOr<WorkerShare> Share() const;

 private:
  int64_t threads_ = 0;
  WorkerShare said_;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_SHARE_FLAGS_H_
