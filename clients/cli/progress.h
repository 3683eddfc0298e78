// "1.2 GiB of 4.8 GiB (25.0%), 3:20 left" while something large is written: one
// line that is written over, on a terminal only. And Ctrl-C while it is: what
// is being written ends then, and is removed.
#ifndef TROUPE_CLIENTS_CLI_PROGRESS_H_
#define TROUPE_CLIENTS_CLI_PROGRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cli/command.h"
#include "clients/cli/interrupt.h"

namespace troupe {

class Progress {
 public:
  // Borrows both. `what` opens the line: "importing: ".
  Progress(Console& console, Interrupt& interrupt, std::string what);
  // Ends the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows it, unless it was shown less than half a second ago; `total` is 0
  // where it is not known. The time that is left goes by what was done since
  // the first call. Cancelled after an interrupt.
  absl::Status Show(int64_t done, int64_t total);

 private:
  Console& console_;
  Interrupt& interrupt_;
  const std::string what_;
  absl::Time shown_at_;
  absl::Time first_at_;
  int64_t first_done_ = -1;  // -1: nothing was told yet
  bool shown_ = false;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_PROGRESS_H_
