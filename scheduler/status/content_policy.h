// What a browser may do with our pages: run the scripts that are in them, show
// their styles, ask us, and nothing else. So text of somebody else's that got
// into a page in spite of all would be text still.
#ifndef TROUPE_SCHEDULER_STATUS_CONTENT_POLICY_H_
#define TROUPE_SCHEDULER_STATUS_CONTENT_POLICY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

// The header "Content-Security-Policy" for this page, which has its scripts and
// styles inside it: <script> and <style> without attributes. Attributes `style`
// are allowed, since the page is drawn with them; those of events are not.
std::string ContentPolicy(absl::string_view html);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_CONTENT_POLICY_H_
