import theme from 'vitepress/theme-without-fonts';
import FirstLead from './FirstLead.vue';
import LeadInbox from './LeadInbox.vue';
import './style.css';

/** The name under which the browser stores the last chosen language. */
const LANGUAGE = 'language';

/** The generator's own theme, with samples in the language that the reader last chose on any page. */
export default {
  ...theme,
  enhanceApp(context: Parameters<typeof theme.enhanceApp>[0]) {
    theme.enhanceApp(context);
    context.app.component('FirstLead', FirstLead).component('LeadInbox', LeadInbox);
    if (typeof document === 'undefined') return;
    document.addEventListener('change', ({ target }) => {
      const language = document.querySelector(`.vp-code-group label[for="${(target as Element).id}"]`)?.textContent;
      if (!language) return;
      localStorage.setItem(LANGUAGE, language);
      showLanguage();
    });
    context.router.onAfterRouteChange = () => void requestAnimationFrame(showLanguage);
  },
};

function showLanguage(): void {
  for (const group of document.querySelectorAll('.vp-code-group')) {
    const labels = [...group.querySelectorAll('label')];
    const chosen = labels.findIndex(({ textContent }) => textContent === localStorage.getItem(LANGUAGE));
    if (chosen < 0) continue;
    (group.querySelectorAll('input')[chosen] as HTMLInputElement).checked = true;
    for (const [index, block] of [...group.querySelectorAll('.blocks > div')].entries())
      block.classList.toggle('active', index === chosen);
  }
}
