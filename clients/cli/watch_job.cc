#include "clients/cli/watch_job.h"

#include <ostream>

#include "clients/cli/view/watch_view.h"
#include "proto/base/status.h"

namespace troupe {

absl::Status WatchJob(Client& client, const WatchJobOptions& options,
                      Interrupt& interrupt, Console& console) {
  absl::Status status;
  {
    WatchView view(console.out, {.terminal = console.terminal,
                                 .width = console.width,
                                 .steps = options.steps});
    status = client.Watch(
        options.from,
        [&](const WatchJobResponse& update) { view.Show(update); },
        [&] { return !interrupt.Arrived(); });
    if (status.ok() && options.steps) status = view.Finish();
  }
  if (absl::IsCancelled(status)) {
    console.err << "troupe: left job " << options.from.id
                << ", which goes on: troupe watch " << options.from.id
                << options.cluster_words << "  (or: troupe cancel "
                << options.from.id << options.cluster_words << ")\n";
  }
  return status;
}

}  // namespace troupe
