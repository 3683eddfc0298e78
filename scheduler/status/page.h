// The status page: page.html, made part of the program.
#ifndef TROUPE_SCHEDULER_STATUS_PAGE_H_
#define TROUPE_SCHEDULER_STATUS_PAGE_H_

namespace troupe {

extern const char kPageHtml[];

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_PAGE_H_
