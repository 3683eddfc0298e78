// What is said, in red, of a job whose checkpoints cannot be written.
#ifndef TROUPE_CLIENTS_CLI_VIEW_UNSAVED_TEXT_H_
#define TROUPE_CLIENTS_CLI_VIEW_UNSAVED_TEXT_H_

#include <string>

#include "proto/status.pb.h"

namespace troupe {

// "UNSAVED since 12:30:05: the checkpoint of step 50 could not be written:
// worker-1 (rank 1): ...". REQUIRES status.unsaved().
std::string UnsavedText(const JobStatus& status);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_UNSAVED_TEXT_H_
