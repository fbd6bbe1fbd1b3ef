#ifndef AUX_TYPES_H
#define AUX_TYPES_H 1

struct statement_list_s {
  oconfig_item_t *statement;
  int statement_num;
};
typedef struct statement_list_s statement_list_t;

struct argument_list_s {
  oconfig_value_t *argument;
  int argument_num;
};
typedef struct argument_list_s argument_list_t;

/* Called for each file that cannot be parsed. The program defines it. */
void oconfig_mistake(const char *file, int line, const char *near,
                     const char *words);

/* Called for each character that is no token, and is ignored. */
void oconfig_ignored(const char *file, int line, const char *text);

/* Called for each option or block from whose strings a backslash was removed
 * that c follows, and neither a quotation mark nor a backslash. `outer` is the
 * outermost block that is open; its key is NULL for none. */
void oconfig_unescaped(const char *file, int line, const oconfig_item_t *option,
                       char c, const oconfig_item_t *outer);

#endif /* AUX_TYPES_H */
