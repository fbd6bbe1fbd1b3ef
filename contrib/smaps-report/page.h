/* The page around the data of a report: html/page.html with its styles and
 * scripts. html/embed makes the source when the program is built. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stddef.h>

extern const unsigned char page_head[], page_tail[];
extern const size_t page_head_size, page_tail_size;

#endif
