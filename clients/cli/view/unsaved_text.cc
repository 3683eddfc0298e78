#include "clients/cli/view/unsaved_text.h"

#include "absl/strings/str_cat.h"
#include "clients/cli/view/format.h"

namespace troupe {

std::string UnsavedText(const JobStatus& status) {
  return absl::StrCat("UNSAVED since ",
                      TimeText(status.unsaved_since_unix_ms()),
                      ": the checkpoint of step ", status.unsaved_step(),
                      " could not be written: ", status.unsaved());
}

}  // namespace troupe
